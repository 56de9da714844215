#pragma once

// A program whose kernels are lambdas, and schedules written by hand: what the executor is tested
// with, free of any backend and planner.

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/backend.h"
#include "schedule/schedule.h"

namespace reprise::runtime::testing {

using base::Bytes;
using graph::NodeId;
using graph::ValueId;
using schedule::SlotId;

using Kernel = std::function<void(const kernels::Call&, const graph::StepContext&)>;

inline const float* floats(const std::byte* bytes) {
  return reinterpret_cast<const float*>(bytes);
}
inline float* floats(std::byte* bytes) {
  return reinterpret_cast<float*>(bytes);
}

class FakeProgram : public kernels::Program {
 public:
  // A value of `count` f32 elements.
  ValueId value(std::string name, std::int64_t count, graph::Role role = graph::Role::kActivation) {
    graph::Value made{.name = std::move(name), .shape = {count}, .role = role};
    prepared_.value_bytes.push_back(count * 4);
    prepared_.value_layouts.push_back("plain");
    return prepared_.graph.values.push_back(std::move(made));
  }

  NodeId node(std::string name, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
              Kernel kernel, Bytes workspace_bytes = 0,
              std::vector<graph::InplacePair> inplace = {}) {
    const NodeId id(prepared_.graph.nodes.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      prepared_.graph.values[outputs[i]].producer = id;
      prepared_.graph.values[outputs[i]].output = static_cast<std::uint32_t>(i);
    }
    graph::Node made;
    made.name = std::move(name);
    made.op = graph::OpKind::kScale;
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    prepared_.graph.nodes.push_back(std::move(made));
    graph::PreparedNode booked;
    booked.workspace_bytes = workspace_bytes;
    booked.inplace = std::move(inplace);
    prepared_.nodes.push_back(std::move(booked));
    kernels_.push_back(std::move(kernel));
    return id;
  }

  graph::PreparedGraph& prepared_graph() { return prepared_; }

  [[nodiscard]] const graph::PreparedGraph& prepared() const override { return prepared_; }
  void run(NodeId node, const kernels::Call& call, const graph::StepContext& context) override {
    kernels_[node.index()](call, context);
  }
  void import_value(ValueId value, std::span<const std::byte> plain, std::byte* stored) override {
    check_size(value, plain.size());
    std::memcpy(stored, plain.data(), plain.size());
  }
  void export_value(ValueId value, const std::byte* stored, std::span<std::byte> plain) override {
    check_size(value, plain.size());
    std::memcpy(plain.data(), stored, plain.size());
  }

 private:
  void check_size(ValueId value, std::size_t got) const {
    const Bytes bytes = prepared_.value_bytes[value];
    if (static_cast<Bytes>(got) != bytes) {
      throw base::input_error("value '{}' has {} bytes, got {}", prepared_.graph.values[value].name,
                              bytes, got);
    }
  }

  graph::PreparedGraph prepared_;
  std::vector<Kernel> kernels_;
};

// Writes a schedule line by line.
class ScheduleWriter {
 public:
  explicit ScheduleWriter(const FakeProgram& program) : program_(program) {}

  SlotId slot(ValueId value, Bytes offset) {
    const Bytes bytes = program_.prepared().value_bytes[value];
    reach(offset + bytes);
    return schedule_.slots.push_back({value, offset, bytes});
  }
  SlotId entry(ValueId value, Bytes offset) {
    schedule_.entry.push_back(slot(value, offset));
    return schedule_.entry.back();
  }
  void exit(SlotId slot) { schedule_.exit.push_back(slot); }
  void run(NodeId node, std::vector<SlotId> reads, std::vector<SlotId> writes,
           Bytes workspace_offset = 0) {
    const Bytes workspace = program_.prepared().nodes[node].workspace_bytes;
    if (workspace > 0) reach(workspace_offset + workspace);
    schedule_.instructions.push_back(
        {node, std::move(reads), std::move(writes), workspace_offset, workspace});
  }
  schedule::Schedule finish() { return std::move(schedule_); }

 private:
  void reach(Bytes end) {
    schedule_.arena_bytes =
        std::max(schedule_.arena_bytes, base::align_up(end, graph::kArenaAlignment));
  }

  const FakeProgram& program_;
  schedule::Schedule schedule_;
};

}  // namespace reprise::runtime::testing
