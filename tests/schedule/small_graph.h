#pragma once

// Prepared graphs by hand, and a lowering of our own that turns an order of nodes into a schedule:
// trace_order for the lifetimes, then the lowest free offset for each buffer in turn.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "graph/prepared.h"
#include "schedule/schedule.h"
#include "schedule/simulate.h"

namespace reprise::schedule::testing {

// Values are f32; the prepared bytes are 4 per element.
class GraphMaker {
 public:
  explicit GraphMaker(std::string name) {
    prepared_.graph.name = std::move(name);
    prepared_.backend = "reference";
    prepared_.cost_source = "analytic";
  }

  ValueId outside(const std::string& name, graph::Shape shape, graph::Role role) {
    graph::Value value;
    value.name = name;
    value.shape = std::move(shape);
    value.role = role;
    value.trainable = role == graph::Role::kParameter;
    return add_value(std::move(value));
  }

  struct Made {
    std::string name;
    graph::Shape shape;
    graph::Role role = graph::Role::kActivation;
  };
  // Appends a node; its cost is the number of bytes that it writes.
  std::vector<ValueId> node(graph::OpKind op, std::vector<ValueId> inputs,
                            const std::vector<Made>& outputs,
                            std::vector<graph::InplacePair> inplace = {},
                            graph::Attributes attributes = {}) {
    graph::Node node;
    node.name = outputs.front().name;
    node.op = op;
    node.attributes = std::move(attributes);
    node.inputs = std::move(inputs);
    node.phase = outputs.front().role == graph::Role::kUpdate     ? graph::Phase::kUpdate
                 : outputs.front().role == graph::Role::kGradient ? graph::Phase::kBackward
                                                                  : graph::Phase::kForward;
    const NodeId id(prepared_.graph.nodes.size());
    graph::PreparedNode facts;
    facts.inplace = std::move(inplace);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      graph::Value value;
      value.name = outputs[i].name;
      value.shape = outputs[i].shape;
      value.role = outputs[i].role;
      value.producer = id;
      value.output = static_cast<std::uint32_t>(i);
      node.outputs.push_back(add_value(std::move(value)));
      facts.cost_ns += prepared_.value_bytes[node.outputs.back()];
    }
    facts.flops = 0.25 * static_cast<double>(facts.cost_ns);
    facts.bytes_moved = 2.0 * static_cast<double>(facts.cost_ns);
    std::vector<ValueId> made = node.outputs;
    prepared_.graph.nodes.push_back(std::move(node));
    prepared_.nodes.push_back(std::move(facts));
    return made;
  }

  // Marks `final`, made in place from `initial`, as its last version.
  void update(ValueId initial, ValueId final) {
    prepared_.graph.updates.push_back({initial, final});
  }
  void fetch(ValueId value) { prepared_.graph.outputs.push_back(value); }
  void workspace(NodeId node, Bytes bytes) { prepared_.nodes[node].workspace_bytes = bytes; }
  [[nodiscard]] const graph::Shape& shape(ValueId value) const {
    return prepared_.graph.values[value].shape;
  }
  [[nodiscard]] graph::PreparedGraph& prepared() { return prepared_; }

 private:
  ValueId add_value(graph::Value value) {
    Bytes bytes = 4;
    for (graph::Dim dim : value.shape) bytes *= dim;
    prepared_.value_bytes.push_back(bytes);
    prepared_.value_layouts.push_back("plain");
    return prepared_.graph.values.push_back(std::move(value));
  }

  graph::PreparedGraph prepared_;
};

class TestLowering {
 public:
  explicit TestLowering(const graph::PreparedGraph& prepared) : prepared_(prepared) {
    add_tensors();
    add_ops();
  }

  [[nodiscard]] const Problem& problem() const { return problem_; }

  [[nodiscard]] Order order(const std::vector<NodeId>& nodes) const {
    Order order;
    for (NodeId node : nodes) order.push_back(ops_.at(node));
    return order;
  }

  // `algorithms`: of each node; empty for the first ones.
  [[nodiscard]] Schedule lower(const Order& order,
                               const std::vector<std::int32_t>& algorithms = {}) const {
    Problem problem = problem_;
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
      const NodeId node(i);
      if (!ops_[node].valid()) continue;  // a reshape
      problem.ops[ops_.at(node)].workspace =
          aligned(prepared_.nodes[node].workspace_of(static_cast<std::size_t>(algorithms[i])));
    }
    const TraceResult result = trace_order(problem, order);
    EXPECT_FALSE(result.fault) << result.fault->message;
    const Trace& trace = result.trace;
    const std::vector<Bytes> offsets = first_fit(trace);
    Schedule schedule;
    for (const Copy& copy : trace.copies) {
      const ValueId value(copy.tensor.index());
      const SlotId slot = schedule.slots.push_back(
          {value, offsets[copy.buffer.index()], prepared_.value_bytes[value]});
      if (copy.made < 0) schedule.entry.push_back(slot);
      const TensorKind kind = problem_.tensors[copy.tensor].kind;
      const bool stays = kind == TensorKind::kOutput || kind == TensorKind::kResident;
      if (stays && copy.last_read == std::ssize(trace.steps)) schedule.exit.push_back(slot);
    }
    for (std::size_t step = 0; step < trace.steps.size(); ++step) {
      Instruction at;
      at.node = nodes_[trace.steps[step].op];
      if (!algorithms.empty()) at.algorithm = algorithms[at.node.index()];
      for (CopyId copy : trace.reads(step)) at.reads.emplace_back(copy.index());
      for (CopyId copy : trace.writes(step)) at.writes.emplace_back(copy.index());
      if (const BufferId workspace = trace.steps[step].workspace; workspace.valid()) {
        at.workspace_offset = offsets[workspace.index()];
        at.workspace_bytes =
            prepared_.nodes[at.node].workspace_of(static_cast<std::size_t>(at.algorithm));
      }
      schedule.instructions.push_back(std::move(at));
    }
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const Bytes bytes = trace.buffers[BufferId(i)].bytes;
      if (bytes > 0) schedule.arena_bytes = std::max(schedule.arena_bytes, offsets[i] + bytes);
    }
    return schedule;
  }

 private:
  static Bytes aligned(Bytes bytes) { return base::align_up(bytes, graph::kArenaAlignment); }

  // One tensor per value, with the same index; a reshaped view is an empty one that nobody uses.
  void add_tensors() {
    const graph::Graph& graph = prepared_.graph;
    for (std::size_t i = 0; i < graph.values.size(); ++i) {
      const graph::Value& value = graph.values[ValueId(i)];
      roots_.emplace_back(i);
      if (value.producer.valid()) {
        const graph::Node& node = graph.nodes[value.producer];
        if (node.op == graph::OpKind::kReshape) roots_[i] = roots_[node.inputs[0].index()];
      }
      TensorKind kind = TensorKind::kTemp;
      if (!value.producer.valid()) {
        kind = graph::is_persistent(value.role) ? TensorKind::kResident : TensorKind::kInput;
      }
      problem_.tensors.push_back({value.name, aligned(prepared_.value_bytes[ValueId(i)]), kind});
    }
    for (ValueId value : graph.outputs) {
      Tensor& tensor = problem_.tensors[tensor_of(value)];
      const bool made = graph.values[roots_[value.index()]].producer.valid();
      tensor.kind = made ? TensorKind::kOutput : TensorKind::kResident;
    }
    for (const graph::Update& update : graph.updates) {
      problem_.tensors[tensor_of(update.initial)].kind = TensorKind::kInput;
      problem_.tensors[tensor_of(update.final)].kind = TensorKind::kOutput;
    }
  }

  TensorId tensor_of(ValueId value) const { return TensorId(roots_[value.index()].index()); }

  void add_ops() {
    ops_.resize(prepared_.graph.nodes.size());
    for (std::size_t i = 0; i < prepared_.graph.nodes.size(); ++i) {
      const graph::Node& node = prepared_.graph.nodes[NodeId(i)];
      if (node.op == graph::OpKind::kReshape) continue;
      Op op;
      op.name = node.name;
      for (ValueId value : node.inputs) op.inputs.push_back(tensor_of(value));
      for (ValueId value : node.outputs) op.outputs.push_back(tensor_of(value));
      op.workspace = aligned(prepared_.nodes[NodeId(i)].workspace_bytes);
      op.cost = prepared_.nodes[NodeId(i)].cost_ns;
      op.recomputable = node.phase != graph::Phase::kUpdate;
      op.inplace = prepared_.nodes[NodeId(i)].inplace;
      ops_[NodeId(i)] = problem_.ops.push_back(std::move(op));
      nodes_.push_back(NodeId(i));
    }
  }

  // Buffers come in the order in which they start.
  static std::vector<Bytes> first_fit(const Trace& trace) {
    std::vector<Bytes> offsets(trace.buffers.size(), 0);
    std::map<Bytes, BufferId> live;  // by offset
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const Buffer& buffer = trace.buffers[BufferId(i)];
      if (buffer.bytes == 0) continue;
      std::erase_if(
          live, [&](const auto& item) { return trace.buffers[item.second].end <= buffer.start; });
      for (const auto& [offset, other] : live) {
        if (offsets[i] + buffer.bytes <= offset) break;
        offsets[i] = offset + trace.buffers[other].bytes;
      }
      live.emplace(offsets[i], BufferId(i));
    }
    return offsets;
  }

  const graph::PreparedGraph& prepared_;
  std::vector<ValueId> roots_;
  Problem problem_;
  base::IdVector<NodeId, OpId> ops_;
  base::IdVector<OpId, NodeId> nodes_;
};

// A training step of two layers in little. Bytes: x 64, w 64 and everything made from them 64.
//
//   x --+--> mul ---> h --> relu --> y --> view (reshape) --> scale --> loss (fetched)
//   w --+                            |        |
//                     gy = mul(view, y) ... relu_grad(y, gy) = gh, mul(gh, x) = gw, sgd(w, gw) = w'
//
// and `frozen`, a parameter that nobody updates, `unread`, a state that nobody reads at all.
struct TinyStep {
  graph::PreparedGraph prepared;
  std::vector<NodeId> nodes;  // program order without the reshape
};

inline TinyStep tiny_step() {
  using graph::OpKind;
  using graph::Role;
  GraphMaker g("tiny");
  const ValueId x = g.outside("x", {16}, Role::kInput);
  const ValueId w = g.outside("w", {16}, Role::kParameter);
  const ValueId frozen = g.outside("frozen", {16}, Role::kParameter);
  g.prepared().graph.values[frozen].trainable = false;
  g.outside("unread", {16}, Role::kState);
  const ValueId h = g.node(OpKind::kMul, {x, w}, {{"h", {16}}}, {{0, 0}, {1, 0}})[0];
  const ValueId y = g.node(OpKind::kRelu, {h}, {{"y", {16}}}, {{0, 0}})[0];
  const ValueId view = g.node(OpKind::kReshape, {y}, {{"view", {1, 16}}}, {},
                              graph::ShapeAttributes{.shape = {1, 16}})[0];
  const ValueId loss = g.node(OpKind::kScale, {view}, {{"loss", {1, 16}}}, {{0, 0}},
                              graph::ScaleAttributes{.factor = 0.5})[0];
  const ValueId gy =
      g.node(OpKind::kMul, {y, frozen}, {{"gy", {16}, Role::kGradient}}, {{0, 0}, {1, 0}})[0];
  const ValueId gh =
      g.node(OpKind::kReluGrad, {y, gy}, {{"gh", {16}, Role::kGradient}}, {{1, 0}, {0, 0}})[0];
  const ValueId gw =
      g.node(OpKind::kMul, {gh, x}, {{"gw", {16}, Role::kGradient}}, {{0, 0}, {1, 0}})[0];
  const ValueId updated = g.node(OpKind::kSgd, {w, gw}, {{"w.next", {16}, Role::kUpdate}},
                                 {{0, 0, true}}, graph::SgdAttributes{})[0];
  g.update(w, updated);
  g.fetch(loss);
  g.workspace(NodeId(0), 128);  // h
  TinyStep step{std::move(g.prepared()), {}};
  for (std::size_t i = 0; i < step.prepared.graph.nodes.size(); ++i) {
    if (step.prepared.graph.nodes[NodeId(i)].op != OpKind::kReshape) step.nodes.emplace_back(i);
  }
  return step;
}

}  // namespace reprise::schedule::testing
