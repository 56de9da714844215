#include "tests/api/shrink.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace reprise::api {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Value;
using graph::ValueId;

// The graph without some of its nodes and outputs.
class Reduction {
 public:
  Reduction(const Graph& graph, const std::set<std::size_t>& nodes, std::size_t dropped_output)
      : old_(graph), stands_for_(graph.values.size()), values_(graph.values) {
    for (std::size_t i = 0; i < values_.size(); ++i) stands_for_[ValueId(i)] = ValueId(i);
    for (std::size_t i = 0; i < old_.nodes.size(); ++i) {
      Node node = old_.nodes[NodeId(i)];
      for (ValueId& input : node.inputs) input = stands_for_[input];
      // What read a further output of a node that is gone (statistics of a norm) goes with it.
      const bool orphan = std::any_of(node.inputs.begin(), node.inputs.end(),
                                      [](ValueId input) { return !input.valid(); });
      if (nodes.count(i) == 0 && !orphan) {
        nodes_.push_back(std::move(node));
      } else {
        bridge(node);
      }
    }
    for (std::size_t i = 0; i < old_.outputs.size(); ++i) {
      if (i != dropped_output) keep_output(stands_for_[old_.outputs[i]]);
    }
    for (const graph::Update& update : old_.updates) {
      const ValueId final = stands_for_[update.final];
      if (final == update.final) updates_.push_back(update);
    }
    loss_ = stands_for_[old_.loss];
    keep_output(loss_);
  }

  // Nothing when what is left is no graph.
  [[nodiscard]] std::optional<Graph> finish() {
    if (!loss_.valid() || !values_[loss_].producer.valid()) return std::nullopt;
    mark_needed();
    Graph graph;
    graph.name = old_.name;
    base::IdVector<ValueId, ValueId> placed(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (needed_[ValueId(i)] != 0)
        placed[ValueId(i)] = graph.values.push_back(values_[ValueId(i)]);
    }
    for (Node& node : nodes_) {
      for (ValueId& input : node.inputs) input = placed[input];
      for (ValueId& output : node.outputs) {
        output = placed[output];
        graph.values[output].producer = NodeId(graph.nodes.size());
      }
      graph.nodes.push_back(std::move(node));
    }
    for (const ValueId output : outputs_) graph.outputs.push_back(placed[output]);
    for (const auto& update : updates_)
      graph.updates.push_back({placed[update.initial], placed[update.final]});
    graph.loss = placed[loss_];
    try {
      graph::validate(graph);
    } catch (const base::Error&) {
      return std::nullopt;
    }
    return graph;
  }

 private:
  void bridge(const Node& node) {
    for (const ValueId output : node.outputs) stands_for_[output] = ValueId{};
    const ValueId first = node.outputs.front();
    const Value& value = values_[first];
    if (value.role == graph::Role::kUpdate) return;  // the persistent value just stays
    for (const ValueId input : node.inputs) {
      if (!input.valid() || graph::is_persistent(values_[input].role)) continue;
      if (values_[input].shape != value.shape || values_[input].dtype != value.dtype) continue;
      stands_for_[first] = input;
      return;
    }
    stands_for_[first] = values_.push_back({.name = "cut." + value.name,
                                            .shape = value.shape,
                                            .dtype = value.dtype,
                                            .role = graph::Role::kInput});
  }

  void keep_output(ValueId output) {
    if (!output.valid() || !values_[output].producer.valid()) return;
    if (std::find(outputs_.begin(), outputs_.end(), output) == outputs_.end())
      outputs_.push_back(output);
  }

  // Values that nothing names any more go. Nodes whose outputs nobody reads stay, as in a network
  // that has some: they go when they are taken away themselves.
  void mark_needed() {
    needed_.resize(values_.size());
    for (const ValueId output : outputs_) needed_[output] = 1;
    for (const auto& update : updates_) needed_[update.initial] = needed_[update.final] = 1;
    for (const Node& node : nodes_) {
      for (const ValueId input : node.inputs) needed_[input] = 1;
      for (const ValueId output : node.outputs) needed_[output] = 1;
    }
  }

  const Graph& old_;
  base::IdVector<ValueId, ValueId> stands_for_;  // by old id; invalid: gone
  base::IdVector<ValueId, Value> values_;        // the old ones, and new inputs
  std::vector<Node> nodes_;
  std::vector<ValueId> outputs_;
  std::vector<graph::Update> updates_;
  ValueId loss_;
  base::IdVector<ValueId, char> needed_;
};

constexpr std::size_t kNone = ~std::size_t{0};

std::size_t size_of(const Graph& graph) {
  return graph.nodes.size() + graph.outputs.size();
}

std::optional<models::Model> reduced(const models::Model& model, const std::set<std::size_t>& nodes,
                                     std::size_t output = kNone) {
  std::optional<Graph> graph = Reduction(model.graph, nodes, output).finish();
  if (!graph || size_of(*graph) >= size_of(model.graph)) return std::nullopt;
  models::Model smaller;
  smaller.graph = std::move(*graph);
  for (const auto& entry : model.initializers) {
    const auto& values = smaller.graph.values;
    const bool there = std::any_of(values.begin(), values.end(),
                                   [&](const Value& value) { return value.name == entry.first; });
    if (there) smaller.initializers.push_back(entry);
  }
  return smaller;
}

// One round of taking away `count` neighbouring nodes, from the end on. True when something went.
bool take_away(models::Model& model, std::size_t count,
               const std::function<bool(const models::Model&)>& fails) {
  bool smaller = false;
  for (std::size_t end = model.graph.nodes.size(); end > 0; end -= std::min(end, count)) {
    end = std::min(end, model.graph.nodes.size());
    if (end == 0) break;
    std::set<std::size_t> nodes;
    for (std::size_t i = end - std::min(end, count); i < end; ++i) nodes.insert(i);
    auto candidate = reduced(model, nodes);
    if (!candidate || !fails(*candidate)) continue;
    model = std::move(*candidate);
    smaller = true;
  }
  for (std::size_t i = 0; count == 1 && i < model.graph.outputs.size(); ++i) {
    auto candidate = reduced(model, {}, i);
    if (!candidate || !fails(*candidate)) continue;
    model = std::move(*candidate);
    smaller = true;
  }
  return smaller;
}

}  // namespace

models::Model shrink(models::Model model, const std::function<bool(const models::Model&)>& fails) {
  for (std::size_t count = model.graph.nodes.size() / 2; count > 1; count /= 2)
    (void)take_away(model, count, fails);
  while (take_away(model, 1, fails)) {
  }
  return model;
}

}  // namespace reprise::api
