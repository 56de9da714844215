#include "kernels/cpu/primitive.h"

#include "base/error.h"

namespace reprise::kernels::cpu {
namespace {

std::vector<Primitive::Argument> arguments_of(const std::vector<Operand>& operands) {
  std::vector<Primitive::Argument> arguments;
  for (const Operand& operand : operands) arguments.push_back({operand.index, operand.desc});
  return arguments;
}

// A scratchpad of no bytes is not an argument.
std::vector<Operand> without_empty(std::vector<Operand> operands) {
  std::erase_if(operands, [](const Operand& operand) { return operand.desc.get_size() == 0; });
  return operands;
}

}  // namespace

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Primitive::Primitive(const dnnl::primitive& primitive, const std::vector<Argument>& arguments)
    : primitive_(primitive), addresses_(arguments.size(), nullptr) {
  for (const Argument& argument : arguments) {
    memories_.push_back(dnnl::memory(argument.desc, cpu_engine(), nullptr));
    arguments_.push_back({argument.index, memories_.back().get()});
  }
}

void Primitive::bind(std::size_t slot, const void* address) {
  if (addresses_[slot] == address) return;
  const dnnl_status_t status =
      dnnl_memory_set_data_handle(arguments_[slot].memory, const_cast<void*>(address));
  REPRISE_CHECK(status == dnnl_success, "oneDNN refuses an address: status {}",
                static_cast<int>(status));
  addresses_[slot] = address;
}

void Primitive::execute(const Run& run) {
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), run.stream, static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) {
    throw base::device_error("node '{}': oneDNN fails with status {}", run.node,
                             static_cast<int>(status));
  }
}

Operand reads(int index, std::size_t input, const Desc& desc) {
  return {index, desc, Operand::From::kInput, input};
}
Operand writes(int index, std::size_t output, const Desc& desc) {
  return {index, desc, Operand::From::kOutput, output};
}
Operand scratch(const Desc& desc, std::size_t offset) {
  return {DNNL_ARG_SCRATCHPAD, desc, Operand::From::kWorkspace, offset};
}

PrimitiveKernel::PrimitiveKernel(const dnnl::primitive& primitive, std::vector<Operand> operands)
    : operands_(without_empty(std::move(operands))),
      primitive_(primitive, arguments_of(operands_)) {}

void PrimitiveKernel::execute(const Run& run) {
  for (std::size_t slot = 0; slot < operands_.size(); ++slot) {
    const Operand& operand = operands_[slot];
    switch (operand.from) {
      case Operand::From::kInput:
        primitive_.bind(slot, run.inputs[operand.at]);
        break;
      case Operand::From::kOutput:
        primitive_.bind(slot, run.outputs[operand.at]);
        break;
      case Operand::From::kWorkspace:
        primitive_.bind(slot, run.workspace + operand.at);
        break;
    }
  }
  primitive_.execute(run);
}

std::unique_ptr<Kernel> reorder_kernel(const Desc& from, const Desc& to, Bytes& workspace_bytes) {
  const dnnl::reorder::primitive_desc pd(cpu_engine(), from, cpu_engine(), to, user_scratchpad());
  workspace_bytes = static_cast<Bytes>(pd.scratchpad_desc().get_size());
  return std::make_unique<PrimitiveKernel>(
      dnnl::reorder(pd), std::vector{reads(DNNL_ARG_SRC, 0, from), writes(DNNL_ARG_DST, 0, to),
                                     scratch(pd.scratchpad_desc())});
}

}  // namespace reprise::kernels::cpu
