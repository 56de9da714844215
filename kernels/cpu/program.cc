#include "kernels/cpu/program.h"

#include <cstring>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/primitive.h"

namespace reprise::kernels::cpu {
namespace {

// One copy between host and arena, outside of any step.
void copy_between(const Desc& from, const void* source, const Desc& to, void* target) {
  dnnl::stream stream(cpu_engine());
  dnnl::memory in(from, cpu_engine(), const_cast<void*>(source));
  dnnl::memory out(to, cpu_engine(), target);
  dnnl::reorder(in, out).execute(stream, in, out);
  stream.wait();
}

}  // namespace

CpuProgram::CpuProgram(LaidOut laid_out, int threads)
    : laid_out_(std::move(laid_out)), threads_(threads), stream_(cpu_engine()) {
  for (std::size_t i = 0; i < laid_out_.prepared.graph.values.size(); ++i) {
    const graph::Value& value = laid_out_.prepared.graph.values[ValueId(i)];
    if (!value.producer.valid() && graph::is_persistent(value.role)) {
      persistent_.emplace(value.name, laid_out_.layouts[ValueId(i)]);
    }
  }
}

void CpuProgram::run(NodeId node, const Call& call, const graph::StepContext& context) {
  use_threads(threads_);
  laid_out_.kernels[node]->execute({.inputs = call.inputs,
                                    .outputs = call.outputs,
                                    .workspace = call.workspace,
                                    .step = context,
                                    .node = laid_out_.prepared.graph.nodes[node].name,
                                    .stream = stream_.get()});
}

const Layout& CpuProgram::host_layout(ValueId id, std::size_t bytes) const {
  const graph::Value& value = laid_out_.prepared.graph.values.at(id);
  const Layout& layout = laid_out_.table[laid_out_.layouts[id]];
  const Bytes plain_bytes = graph::element_count(value.shape) * graph::dtype_bytes(value.dtype);
  if (layout.forward != nullptr) {
    throw base::input_error("value '{}' is a workspace, which has no plain form", value.name);
  }
  if (static_cast<Bytes>(bytes) != plain_bytes) {
    throw base::input_error("value '{}' {} has {} bytes, the host's buffer {}", value.name,
                            graph::shape_text(value.shape), plain_bytes, bytes);
  }
  return layout;
}

void CpuProgram::import_value(ValueId value, std::span<const std::byte> plain, std::byte* stored) {
  const Layout& layout = host_layout(value, plain.size());
  if (layout.is_plain) {
    if (!plain.empty()) std::memcpy(stored, plain.data(), plain.size());
    return;
  }
  use_threads(threads_);
  copy_between(layout.plain, plain.data(), layout.desc, stored);
}

void CpuProgram::export_value(ValueId value, const std::byte* stored, std::span<std::byte> plain) {
  const Layout& layout = host_layout(value, plain.size());
  if (layout.is_plain) {
    if (!plain.empty()) std::memcpy(plain.data(), stored, plain.size());
    return;
  }
  use_threads(threads_);
  copy_between(layout.desc, stored, layout.plain, plain.data());
}

const Layout* CpuProgram::persistent_layout(std::string_view name) const {
  const auto known = persistent_.find(name);
  return known == persistent_.end() ? nullptr : &laid_out_.table[known->second];
}

}  // namespace reprise::kernels::cpu
