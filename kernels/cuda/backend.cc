#include <mutex>

#include "base/error.h"
#include "kernels/cuda/module.h"
#include "kernels/cuda/nccl_sums.h"
#include "kernels/cuda/program.h"

namespace reprise::kernels {
namespace cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const BackendOptions& options)
      : device_(std::make_shared<Device>(options.ordinal, options.tensor_floats)),
        memory_(std::make_shared<CudaMemory>(device_)),
        record_steps_(options.record_steps) {}

  [[nodiscard]] std::string_view name() const override { return "cuda"; }

  [[nodiscard]] std::string description() const override {
    return fmt::format("GPU {} ({}, {}), {}, {}", device_->ordinal(), device_->name(),
                       base::format_bytes(device_->total_bytes()), device_->versions(),
                       device_->tensor_floats() ? "TF32 products" : "f32 products");
  }

  [[nodiscard]] std::shared_ptr<DeviceMemory> memory() const override { return memory_; }
  [[nodiscard]] base::Bytes overhead_bytes() const override { return device_->overhead_bytes(); }

  [[nodiscard]] std::unique_ptr<Program> prepare(const graph::Graph& graph,
                                                 const Program* like) const override {
    if (like != nullptr && like->prepared().backend != name()) {
      throw base::input_error("graph '{}': `like` is a program of backend {}, this one is cuda",
                              graph.name, like->prepared().backend);
    }
    return std::make_unique<CudaProgram>(graph, device_, memory_, record_steps_);
  }

  [[nodiscard]] std::string make_group_id() const override { return make_nccl_id(); }
  [[nodiscard]] std::unique_ptr<DeviceSums> join_group(const std::string& id, int rank,
                                                       int world_size,
                                                       const Patience& patience) const override {
    auto sums = std::make_unique<NcclSums>(device_);
    sums->join(id, rank, world_size, patience);
    return sums;
  }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<CudaMemory> memory_;
  bool record_steps_;
};

std::unique_ptr<Backend> make_backend(const BackendOptions& options) {
  return std::make_unique<CudaBackend>(options);
}

}  // namespace

const CudaModule& module_entry() {
  static const CudaModule module{.make_backend = make_backend, .count_devices = count_devices};
  return module;
}

}  // namespace cuda
}  // namespace reprise::kernels

extern "C" __attribute__((visibility("default"))) const reprise::kernels::CudaModule*
reprise_cuda_module() {
  return &reprise::kernels::cuda::module_entry();
}
