#include "graph/forward_copies.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/autodiff.h"

namespace reprise::graph {

ForwardCopies::ForwardCopies(Graph forward, std::vector<StatisticsUpdate> statistics,
                             std::int64_t count)
    : count_(count), of_one_(std::move(statistics)), statistics_(of_one_) {
  for (Assignment& assignment : remove_assignments(forward))
    carried_.push_back({.assignment = std::move(assignment), .variable = {}, .parts = {}});
  forward_ = std::move(forward);
  at_.resize(forward_.values.size());
  for (const Node& node : forward_.nodes) {
    if (const auto* dropout = std::get_if<DropoutAttributes>(&node.attributes))
      dropout_streams_ = std::max(dropout_streams_, dropout->stream + 1);
  }
}

Builder ForwardCopies::begin() {
  if (count_ == 1) {
    for (std::size_t i = 0; i < at_.size(); ++i) at_[ValueId(i)] = ValueId(i);
    for (Carried& each : carried_) each.variable = each.assignment.state;
    end_node_ = forward_.nodes.size();
    return Builder(forward_);
  }
  if (!forward_.updates.empty()) {
    throw base::input_error("graph '{}' updates '{}' itself, which micro-batches would do {} times",
                            forward_.name, forward_.values[forward_.updates.front().initial].name,
                            count_);
  }
  base::IdVector<ValueId, bool> rows(forward_.values.size(), false);
  for (const Carried& each : carried_) rows[each.assignment.state] = true;
  Builder builder(forward_.name);
  for (std::size_t i = 0; i < forward_.values.size(); ++i) {
    const Value& value = forward_.values[ValueId(i)];
    if (value.producer.valid() || value.role == Role::kInput) continue;
    Shape shape = value.shape;
    if (rows[ValueId(i)]) {
      if (shape.empty()) {
        throw base::input_error("micro-batches: the carried state '{}' has no axis for the batch",
                                value.name);
      }
      shape[0] *= count_;
    }
    at_[ValueId(i)] =
        builder.source(value.name, std::move(shape), value.dtype, value.role, value.trainable);
  }
  for (Carried& each : carried_) each.variable = at_[each.assignment.state];
  for (std::size_t i = 0; i < of_one_.size(); ++i) {
    statistics_[i].running_mean = at_[of_one_[i].running_mean];
    statistics_[i].running_var = at_[of_one_[i].running_var];
    statistics_[i].batches.clear();
  }
  return builder;
}

void ForwardCopies::append(Builder& builder) {
  if (count_ > 1) {
    const Builder::Scope scope(builder, micro_batch_name(appended_, ""));
    first_node_ = builder.graph().nodes.size();
    append_sources(builder);
    append_nodes(builder);
    end_node_ = builder.graph().nodes.size();
    for (std::size_t i = 0; i < of_one_.size(); ++i) {
      for (ValueId value : of_one_[i].batches) statistics_[i].batches.push_back(at_[value]);
    }
    for (ValueId output : forward_.outputs) {
      if (output != forward_.loss) builder.add_output(at_[output]);
    }
  }
  for (Carried& each : carried_) each.parts.push_back(at_[each.assignment.x]);
  ++appended_;
}

void ForwardCopies::append_sources(Builder& builder) {
  for (std::size_t i = 0; i < forward_.values.size(); ++i) {
    const Value& value = forward_.values[ValueId(i)];
    if (value.producer.valid() || value.role != Role::kInput) continue;
    at_[ValueId(i)] = builder.source(value.name, value.shape, value.dtype, value.role);
  }
  for (const Carried& each : carried_) {
    const Value& state = forward_.values[each.assignment.state];
    at_[each.assignment.state] =
        builder.slice(each.variable, 0, appended_ * state.shape[0],
                      (appended_ + 1) * state.shape[0], state.name + ".part");
  }
}

void ForwardCopies::append_nodes(Builder& builder) {
  for (const Node& node : forward_.nodes) {
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(at_[input]);
    Attributes attributes = node.attributes;
    if (auto* dropout = std::get_if<DropoutAttributes>(&attributes))
      dropout->stream += appended_ * dropout_streams_;
    const auto outputs = builder.append(node.op, std::move(inputs), attributes, node.name,
                                        node.phase, node.accumulate);
    for (std::size_t i = 0; i < outputs.size(); ++i) at_[node.outputs[i]] = outputs[i];
  }
}

std::vector<Assignment> ForwardCopies::assignments(Builder& builder) const {
  std::vector<Assignment> all;
  for (const Carried& each : carried_) {
    const ValueId x = count_ == 1
                          ? each.parts[0]
                          : builder.append(OpKind::kConcat, each.parts, AxisAttributes{.axis = 0},
                                           each.assignment.name + ".rows", Phase::kUpdate)[0];
    all.push_back({each.variable, x, each.assignment.name});
  }
  return all;
}

}  // namespace reprise::graph
