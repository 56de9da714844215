#include "planner/lowering.h"

#include <algorithm>

#include "base/error.h"
#include "planner/node_order.h"

namespace reprise::planner {
namespace {

using graph::NodeId;
using graph::ValueId;
using schedule::OpId;
using schedule::TensorId;
using schedule::TensorKind;

class ProblemMaker {
 public:
  explicit ProblemMaker(const graph::PreparedGraph& prepared)
      : prepared_(prepared),
        graph_(prepared.graph),
        root_(graph_.values.size()),
        tensor_(graph_.values.size()),
        wanted_(graph_.values.size(), false),
        stays_(graph_.values.size(), false),
        changes_(graph_.values.size(), false) {}

  GraphProblem run() {
    result_.problem.name = graph_.name;
    find_roots();
    mark_what_stays();
    const std::vector<bool> needed = needed_nodes();
    add_values_from_outside();
    bool backward = false;
    const std::vector<NodeId> last =
        graph_.updates_last ? graph::parameter_updates(graph_) : std::vector<NodeId>();
    const NodeOrder order = order_nodes(prepared_, root_, needed);
    for (const NodeId node : order.nodes) {
      const graph::Phase phase = graph_.nodes[node].phase;
      backward = backward || phase == graph::Phase::kBackward;
      if (std::binary_search(last.begin(), last.end(), node)) continue;
      add_op(node, order.late[node.index()] || (backward && phase != graph::Phase::kForward));
    }
    if (!last.empty()) add_last_updates(last);
    return std::move(result_);
  }

 private:
  // In node order, so that each reshape finds the root of what it views.
  void find_roots() {
    for (std::size_t v = 0; v < graph_.values.size(); ++v) root_[ValueId(v)] = ValueId(v);
    for (const graph::Node& node : graph_.nodes) {
      if (node.op == graph::OpKind::kReshape) root_[node.outputs[0]] = root_[node.inputs[0]];
    }
  }

  void mark_what_stays() {
    for (ValueId value : graph_.outputs) mark_wanted(value);
    for (const graph::Update& update : graph_.updates) {
      mark_wanted(update.final);
      changes_[update.initial.index()] = true;
    }
  }
  void mark_wanted(ValueId value) {
    wanted_[root_[value].index()] = true;
    stays_[root_[value].index()] = true;
  }

  std::vector<bool> needed_nodes() {
    std::vector<bool> needed(graph_.nodes.size(), false);
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
      const graph::Node& node = graph_.nodes[NodeId(n)];
      if (node.op == graph::OpKind::kReshape) continue;  // its root is wanted in its place
      needed[n] = std::any_of(node.outputs.begin(), node.outputs.end(),
                              [&](ValueId v) { return wanted_[v.index()]; });
      if (!needed[n]) continue;
      for (ValueId input : node.inputs) wanted_[root_[input].index()] = true;
    }
    return needed;
  }

  void add_values_from_outside() {
    for (bool persistent : {true, false}) {
      for (std::size_t v = 0; v < graph_.values.size(); ++v) {
        const graph::Value& value = graph_.values[ValueId(v)];
        if (value.producer.valid() || graph::is_persistent(value.role) != persistent) continue;
        const bool resident = stays_[v] || (persistent && !changes_[v]);
        add_tensor(ValueId(v), resident ? TensorKind::kResident : TensorKind::kInput);
      }
    }
  }

  void add_tensor(ValueId value, TensorKind kind) {
    const Bytes bytes = base::align_up(prepared_.value_bytes[value], graph::kArenaAlignment);
    tensor_[value] = result_.problem.tensors.push_back({graph_.values[value].name, bytes, kind});
    result_.values.push_back(value);
  }

  void add_op(NodeId id, bool backward) {
    const graph::Node& node = graph_.nodes[id];
    const graph::PreparedNode& prepared = prepared_.nodes[id];
    schedule::Op op;
    op.name = node.name;
    for (ValueId input : node.inputs) {
      const TensorId tensor = tensor_[root_[input]];
      REPRISE_CHECK(tensor.valid(), "node '{}' reads '{}', which nothing makes", node.name,
                    graph_.values[input].name);
      op.inputs.push_back(tensor);
    }
    for (ValueId output : node.outputs) {
      add_tensor(output, stays_[output.index()] ? TensorKind::kOutput : TensorKind::kTemp);
      op.outputs.push_back(tensor_[output]);
    }
    std::vector<schedule::Algorithm> algorithms;
    for (std::size_t k = 0; k < prepared.algorithms(); ++k) {
      algorithms.push_back(
          {base::align_up(prepared.workspace_of(k), graph::kArenaAlignment), prepared.cost_of(k)});
    }
    result_.algorithms.push_back(schedule::set_algorithms(op, algorithms));
    op.recomputable = graph::op_info(node.op).recomputable;
    op.backward = backward;
    op.inplace = prepared.inplace;
    result_.problem.ops.push_back(std::move(op));
    result_.nodes.push_back(id);
  }

  // Updates that wait for all gradients read a token of no bytes, which an op of no cost makes from
  // them. It stands for no node.
  void add_last_updates(const std::vector<NodeId>& updates) {
    const TensorId token =
        result_.problem.tensors.push_back({"all gradients", 0, TensorKind::kTemp});
    result_.values.push_back({});
    schedule::Op all;
    all.name = "all gradients";
    for (ValueId gradient : graph::final_gradients(graph_)) all.inputs.push_back(tensor_[gradient]);
    all.outputs = {token};
    all.recomputable = false;
    all.backward = true;
    result_.problem.ops.push_back(std::move(all));
    result_.nodes.push_back({});
    result_.algorithms.push_back({0});
    for (NodeId node : updates) {
      add_op(node, true);
      result_.problem.ops[OpId(result_.problem.ops.size() - 1)].inputs.push_back(token);
    }
  }

  const graph::PreparedGraph& prepared_;
  const graph::Graph& graph_;
  GraphProblem result_;
  base::IdVector<ValueId, ValueId> root_;
  base::IdVector<ValueId, TensorId> tensor_;  // of roots
  std::vector<bool> wanted_, stays_, changes_;
};

}  // namespace

GraphProblem make_problem(const graph::PreparedGraph& prepared) {
  return ProblemMaker(prepared).run();
}

schedule::Schedule lower(const graph::PreparedGraph& prepared, const GraphProblem& problem,
                         const Plan& plan) {
  const schedule::TraceResult traced =
      schedule::trace_order(problem.problem, plan.order, plan.choices);
  REPRISE_CHECK(!traced.fault, "lowering a plan that is no execution: {}",
                traced.fault ? traced.fault->message : "");
  const schedule::Trace& trace = traced.trace;
  REPRISE_CHECK(plan.packing.offsets.size() == trace.buffers.size(),
                "the plan has offsets of {} buffers, its order has {}", plan.packing.offsets.size(),
                trace.buffers.size());
  const auto offset = [&](schedule::BufferId b) { return plan.packing.offsets[b.index()]; };
  const auto steps = static_cast<std::int64_t>(plan.order.size());

  schedule::Schedule result;
  result.arena_bytes = base::align_up(plan.arena, graph::kArenaAlignment);
  std::vector<schedule::SlotId> slots;  // of each copy; none for the token of the updates
  for (const schedule::Copy& copy : trace.copies) {
    const graph::ValueId value = problem.values[copy.tensor];
    if (!value.valid()) {
      slots.emplace_back();
      continue;
    }
    const schedule::SlotId slot =
        result.slots.push_back({value, offset(copy.buffer), prepared.value_bytes[value]});
    slots.push_back(slot);
    if (copy.made < 0) result.entry.push_back(slot);
    if (copy.last_read >= steps) result.exit.push_back(slot);
  }
  result.instructions.reserve(trace.steps.size());
  for (std::size_t step = 0; step < trace.steps.size(); ++step) {
    schedule::Instruction instruction;
    const schedule::OpId op = trace.steps[step].op;
    instruction.node = problem.nodes[op];
    if (!instruction.node.valid()) continue;
    const std::size_t choice =
        plan.choices.empty() ? 0 : static_cast<std::size_t>(plan.choices[op.index()]);
    instruction.algorithm = static_cast<std::int32_t>(problem.algorithms[op][choice]);
    for (schedule::CopyId c : trace.reads(step)) {
      if (slots[c.index()].valid()) instruction.reads.push_back(slots[c.index()]);
    }
    for (schedule::CopyId c : trace.writes(step)) instruction.writes.push_back(slots[c.index()]);
    if (trace.steps[step].workspace.valid()) {
      instruction.workspace_offset = offset(trace.steps[step].workspace);
      instruction.workspace_bytes = prepared.nodes[instruction.node].workspace_of(
          static_cast<std::size_t>(instruction.algorithm));
    }
    result.instructions.push_back(std::move(instruction));
  }
  return result;
}

}  // namespace reprise::planner
