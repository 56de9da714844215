#include "kernels/backend.h"

#include <algorithm>
#include <sched.h>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/program.h"

namespace reprise::kernels {
namespace {

// Cores this process may use: containers and batch systems hand out a part of the machine.
int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

std::string instruction_set() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "SSE4.1";
    case dnnl::cpu_isa::avx:
      return "AVX";
    case dnnl::cpu_isa::avx2:
    case dnnl::cpu_isa::avx2_vnni:
      return "AVX2";
    case dnnl::cpu_isa::avx512_core:
    case dnnl::cpu_isa::avx512_core_vnni:
    case dnnl::cpu_isa::avx512_core_bf16:
      return "AVX-512";
    default:
      return "other instructions";
  }
}

// oneDNN has bf16 kernels for AVX-512 alone, with instructions of their own or without.
bool computes_in_bf16() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
    case dnnl::cpu_isa::avx:
    case dnnl::cpu_isa::avx2:
    case dnnl::cpu_isa::avx2_vnni:
      return false;
    default:
      return true;
  }
}

void require_bf16(const graph::Graph& graph) {
  const auto& values = graph.values;
  const auto found = std::find_if(values.begin(), values.end(), [](const graph::Value& value) {
    return value.dtype == graph::DType::kBF16;
  });
  if (found == values.end() || computes_in_bf16()) return;
  throw base::device_error(
      "graph '{}': '{}' is bf16, for which oneDNN needs a CPU with AVX-512 and this one has {}; "
      "use "
      "--precision f32",
      graph.name, found->name, instruction_set());
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const BackendOptions& options)
      : threads_(options.threads > 0 ? options.threads : allowed_cores()) {
    if (options.threads < 0) {
      throw base::input_error("threads {}: give 0 (all cores) or a positive number",
                              options.threads);
    }
  }

  [[nodiscard]] std::string_view name() const override { return "cpu"; }

  [[nodiscard]] std::string description() const override {
    const dnnl::version_t* version = dnnl::version();
    return fmt::format("oneDNN {}.{}.{}, {} thread{}, {}", version->major, version->minor,
                       version->patch, threads_, threads_ == 1 ? "" : "s", instruction_set());
  }

  [[nodiscard]] std::unique_ptr<Program> prepare(const graph::Graph& graph,
                                                 const Program* like) const override {
    const auto* fixed = dynamic_cast<const cpu::CpuProgram*>(like);
    if (like != nullptr && fixed == nullptr) {
      throw base::input_error("graph '{}': `like` is a program of another backend than cpu",
                              graph.name);
    }
    require_bf16(graph);
    // Primitives are made for the number of threads that will run them.
    cpu::use_threads(threads_);
    return std::make_unique<cpu::CpuProgram>(cpu::choose_layouts(graph, fixed), threads_);
  }

 private:
  int threads_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const BackendOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace reprise::kernels
