#include "kernels/cuda/program.h"

#include <nvtx3/nvToolsExt.h>

#include "base/error.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

// For profilers of NVIDIA's: what is queued while it lives belongs to the node of that name. Does
// nothing while no profiler listens.
class NamedRange {
 public:
  explicit NamedRange(const std::string& name) { nvtxRangePushA(name.c_str()); }
  ~NamedRange() { nvtxRangePop(); }
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;
};

}  // namespace

CudaProgram::CudaProgram(const graph::Graph& graph, std::shared_ptr<Device> device,
                         std::shared_ptr<CudaMemory> memory, bool record_steps)
    : device_(std::move(device)),
      memory_(std::move(memory)),
      record_steps_(record_steps),
      limits_(graph),
      staging_(device_) {
  prepared_.graph = graph;
  prepared_.backend = "cuda";
  prepared_.cost_source = "analytic";
  for (const graph::Value& value : graph.values) {
    prepared_.value_bytes.push_back(plain_bytes(value));
    prepared_.value_layouts.push_back("plain");
  }
  device_->make_current();
  StepScalars scalars;
  for (const graph::Node& node : graph.nodes) {
    Booking booking(graph, node, *device_, scalars);
    std::unique_ptr<Kernel> kernel = plan_kernel(booking);
    Booking::Booked booked = booking.finish(std::move(kernel));
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (booked.own_bytes[o] == 0) continue;
      prepared_.value_bytes[node.outputs[o]] = booked.own_bytes[o];
      prepared_.value_layouts[node.outputs[o]] = "workspace";
    }
    prepared_.nodes.push_back(std::move(booked.node));
    kernels_.push_back(std::move(booked.kernel));
  }
  step_ = std::make_unique<StepBuffer>(device_, memory_, std::move(scalars));
}

void CudaProgram::run(NodeId node, const Call& call, const graph::StepContext& context) {
  const NamedRange range(prepared_.graph.nodes[node].name);
  step_->set(context);
  kernels_[node]->execute({.inputs = call.inputs,
                           .outputs = call.outputs,
                           .workspace = call.workspace,
                           .algorithm = static_cast<std::size_t>(call.algorithm),
                           .device = *device_,
                           .step = step_->on_device(),
                           .node = prepared_.graph.nodes[node].name});
}

std::int64_t CudaProgram::timed_run(NodeId node, const Call& call,
                                    const graph::StepContext& context) {
  if (!stopwatch_) stopwatch_ = std::make_unique<Stopwatch>(device_);
  step_->set(context);
  stopwatch_->start();
  run(node, call, context);
  return stopwatch_->stop_ns();
}

void CudaProgram::run_step(const graph::StepContext& context, Tape* tape,
                           const std::function<void(const graph::StepContext&)>& instructions) {
  device_->make_current();
  step_->set(context);
  staging_.join();
  const auto queue = [&] { instructions(context); };
  if (tape == nullptr) {
    queue();
  } else {
    static_cast<CudaTape*>(tape)->run(queue);
  }
}

std::unique_ptr<Tape> CudaProgram::make_tape() {
  return record_steps_ ? std::make_unique<CudaTape>(device_) : nullptr;
}

void CudaProgram::check_size(ValueId id, std::size_t bytes) const {
  const graph::Value& value = prepared_.graph.values.at(id);
  if (prepared_.value_layouts[id] == "workspace") {
    throw base::input_error("value '{}' is a workspace, which has no plain form", value.name);
  }
  if (static_cast<Bytes>(bytes) != plain_bytes(value)) {
    throw base::input_error("value '{}' {} has {} bytes, the host's buffer {}", value.name,
                            graph::shape_text(value.shape), plain_bytes(value), bytes);
  }
}

void CudaProgram::begin_import(ValueId value, std::span<const std::byte> plain, std::byte* stored,
                               std::size_t mark) {
  check_size(value, plain.size());
  limits_.require(value, plain);
  staging_.begin(plain, stored, mark);
}

void CudaProgram::import_value(ValueId value, std::span<const std::byte> plain, std::byte* stored) {
  check_size(value, plain.size());
  limits_.require(value, plain);
  memory_->write(stored, plain);
}

void CudaProgram::export_value(ValueId value, const std::byte* stored, std::span<std::byte> plain) {
  check_size(value, plain.size());
  memory_->read(stored, plain);
}

}  // namespace reprise::kernels::cuda
