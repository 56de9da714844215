#include "graph/evaluation.h"

#include <string_view>
#include <unordered_map>

#include "base/error.h"

namespace reprise::graph {
namespace {

bool is_source_of_state(const Value& value) {
  return !value.producer.valid() && is_persistent(value.role);
}

std::string described(const Value& value) {
  return fmt::format("{} {} {}", role_name(value.role), dtype_name(value.dtype),
                     shape_text(value.shape));
}

using ValueMap = base::IdVector<ValueId, ValueId>;

// Appends the values of `evaluation` behind the shared ones; persistent ones become those.
ValueMap place_values(const Graph& evaluation, const Graph& training, Graph& result) {
  std::unordered_map<std::string_view, ValueId> shared;
  for (const Value& value : training.values) {
    if (is_source_of_state(value)) shared.emplace(value.name, result.values.push_back(value));
  }
  ValueMap placed(evaluation.values.size());
  for (std::size_t i = 0; i < evaluation.values.size(); ++i) {
    const Value& value = evaluation.values[ValueId(i)];
    const auto found = shared.find(value.name);
    if (!is_source_of_state(value)) {
      if (found != shared.end()) {
        throw base::input_error("'{}' is {} in the evaluation graph and {} in the training graph",
                                value.name, described(value),
                                described(result.values[found->second]));
      }
      placed[ValueId(i)] = result.values.push_back(value);
      continue;
    }
    if (found == shared.end()) {
      throw base::input_error("the evaluation graph's {} '{}' is missing in the training graph",
                              role_name(value.role), value.name);
    }
    const Value& there = result.values[found->second];
    if (value.shape != there.shape || value.dtype != there.dtype || value.role != there.role) {
      throw base::input_error("'{}' is {} in the evaluation graph and {} in the training graph",
                              value.name, described(value), described(there));
    }
    placed[ValueId(i)] = found->second;
  }
  return placed;
}

}  // namespace

Graph share_persistent_values(const Graph& evaluation, const Graph& training) {
  Graph result;
  result.name = evaluation.name;
  const ValueMap placed = place_values(evaluation, training, result);
  for (Node node : evaluation.nodes) {
    for (ValueId& input : node.inputs) input = placed[input];
    for (ValueId& output : node.outputs) output = placed[output];
    result.nodes.push_back(std::move(node));
  }
  for (ValueId output : evaluation.outputs) result.outputs.push_back(placed[output]);
  for (const Update& update : evaluation.updates) {
    result.updates.push_back({placed[update.initial], placed[update.final]});
  }
  if (evaluation.loss.valid()) result.loss = placed[evaluation.loss];
  validate(result);
  return result;
}

}  // namespace reprise::graph
