#include "graph/forward_updates.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace reprise::graph {
namespace {

bool is_taken(const Graph& graph, const Value& value) {
  return value.producer.valid() && graph.nodes[value.producer].op == OpKind::kBatchNormUpdate;
}

class StatisticsTaker {
 public:
  explicit StatisticsTaker(const Graph& forward) : forward_(forward) {}

  WithoutStatistics run() {
    result_.graph.name = forward_.name;
    result_.graph.updates_last = forward_.updates_last;
    move_values();
    for (const Node& node : forward_.nodes) move_node(node);
    for (ValueId output : forward_.outputs) {
      if (!result_.moved[output].valid()) {
        throw base::input_error(
            "'{}' is made by a batch_norm_update and is a fetched output; fetch its state instead",
            forward_.values[output].name);
      }
      result_.graph.outputs.push_back(result_.moved[output]);
    }
    for (const Update& update : forward_.updates) {
      if (!result_.moved[update.final].valid()) continue;
      result_.graph.updates.push_back({result_.moved[update.initial], result_.moved[update.final]});
    }
    if (forward_.loss.valid()) result_.graph.loss = result_.moved[forward_.loss];
    return std::move(result_);
  }

 private:
  void move_values() {
    result_.moved.resize(forward_.values.size());
    for (std::size_t i = 0; i < forward_.values.size(); ++i) {
      const Value& value = forward_.values[ValueId(i)];
      if (!is_taken(forward_, value))
        result_.moved[ValueId(i)] = result_.graph.values.push_back(value);
    }
  }

  void move_node(Node node) {
    for (ValueId& input : node.inputs) input = result_.moved[input];
    if (node.op == OpKind::kBatchNormUpdate) {
      result_.updates.push_back({.name = node.name,
                                 .attributes = std::get<RunningUpdateAttributes>(node.attributes),
                                 .running_mean = node.inputs[0],
                                 .running_var = node.inputs[1],
                                 .batches = {node.inputs.begin() + 2, node.inputs.end()}});
      return;
    }
    for (ValueId& output : node.outputs) {
      output = result_.moved[output];
      result_.graph.values[output].producer = NodeId(result_.graph.nodes.size());
    }
    result_.graph.nodes.push_back(std::move(node));
  }

  const Graph& forward_;
  WithoutStatistics result_;
};

}  // namespace

std::vector<Assignment> remove_assignments(Graph& graph) {
  std::vector<Assignment> assignments;
  while (!graph.nodes.empty() &&
         graph.nodes[NodeId(graph.nodes.size() - 1)].op == OpKind::kAssign) {
    const Node node = graph.nodes[NodeId(graph.nodes.size() - 1)];
    REPRISE_CHECK(node.outputs[0].index() + 1 == graph.values.size(),
                  "assign '{}' does not own the last value", node.name);
    assignments.push_back({node.inputs[0], node.inputs[1], node.name});
    std::erase_if(graph.updates,
                  [&](const Update& update) { return update.final == node.outputs[0]; });
    if (std::find(graph.outputs.begin(), graph.outputs.end(), node.outputs[0]) !=
        graph.outputs.end()) {
      throw base::input_error("assign '{}' makes a fetched output; fetch its state instead",
                              node.name);
    }
    graph.nodes.resize(graph.nodes.size() - 1);
    graph.values.resize(graph.values.size() - 1);
  }
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::kAssign) {
      throw base::input_error("assign '{}' must come after all other nodes of the forward graph",
                              node.name);
    }
  }
  std::reverse(assignments.begin(), assignments.end());
  return assignments;
}

WithoutStatistics take_statistics_updates(const Graph& forward) {
  return StatisticsTaker(forward).run();
}

}  // namespace reprise::graph
