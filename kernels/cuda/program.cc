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

bool joins_batch(const graph::Node& node) {
  return node.op == graph::OpKind::kSgd || node.op == graph::OpKind::kAdam;
}

void require_bf16(const graph::Graph& graph, const Device& device) {
  if (device.has_bf16()) return;
  for (const graph::Value& value : graph.values) {
    if (value.dtype != graph::DType::kBF16) continue;
    throw base::input_error(
        "value '{}' is bf16: GPU {} ({}) has compute capability {}.x, bf16 needs 8.0 or newer; "
        "take "
        "--precision f32",
        value.name, device.ordinal(), device.name(), device.generation());
  }
}

// While instructions of a step are queued; updates of one that fails are forgotten.
class StepScope {
 public:
  StepScope(bool& in_step, UpdateBatch& updates) : in_step_(in_step), updates_(updates) {
    in_step_ = true;
  }
  ~StepScope() {
    in_step_ = false;
    updates_.drop();
  }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

 private:
  bool& in_step_;
  UpdateBatch& updates_;
};

}  // namespace

CudaProgram::CudaProgram(const graph::Graph& graph, std::shared_ptr<Device> device,
                         std::shared_ptr<CudaMemory> memory, bool record_steps)
    : device_(std::move(device)),
      memory_(std::move(memory)),
      record_steps_(record_steps),
      limits_(graph),
      staging_(device_) {
  require_bf16(graph, *device_);
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
  updates_.reserve(graph.nodes.size());
}

void CudaProgram::queue(NodeId node, const Call& call) {
  const graph::Node& of = prepared_.graph.nodes[node];
  const NamedRange range(of.name);
  if (!joins_batch(of)) updates_.flush(device_->compute());
  kernels_[node]->execute({.inputs = call.inputs,
                           .outputs = call.outputs,
                           .workspace = call.workspace,
                           .algorithm = static_cast<std::size_t>(call.algorithm),
                           .device = *device_,
                           .step = step_->on_device(),
                           .updates = updates_,
                           .node = of.name});
  if (!in_step_) updates_.flush(device_->compute());
}

void CudaProgram::run(NodeId node, const Call& call, const graph::StepContext& context) {
  step_->set(context);
  queue(node, call);
}

std::int64_t CudaProgram::timed_run(NodeId node, const Call& call,
                                    const graph::StepContext& context) {
  if (!stopwatch_) stopwatch_ = std::make_unique<Stopwatch>(device_);
  step_->set(context);
  stopwatch_->start();
  queue(node, call);
  updates_.flush(device_->compute());
  return stopwatch_->stop_ns();
}

void CudaProgram::run_step(const graph::StepContext& context, Tape* tape,
                           const std::function<void(const graph::StepContext&)>& instructions) {
  device_->make_current();
  step_->set(context);
  staging_.join();
  const auto all = [&] {
    const StepScope scope(in_step_, updates_);
    instructions(context);
    updates_.flush(device_->compute());
  };
  if (tape == nullptr) {
    all();
  } else {
    static_cast<CudaTape*>(tape)->run(all);
  }
}

// The batch that comes next may overwrite what lies before the mark.
void CudaProgram::mark(std::size_t number) {
  updates_.flush(device_->compute());
  staging_.mark(number);
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
