#include "graph/gradient.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace reprise::graph {

ValueId GradientContext::gradient(std::size_t output) {
  const auto& partial = gradients_[node_.outputs[output]];
  if (partial) return partial->value;
  const Shape zeros = shape(node_.outputs[output]);
  return append(OpKind::kFill, {}, ShapeAttributes{zeros, 0.0}, fmt::format("zeros{}", output))[0];
}

std::vector<ValueId> GradientContext::append(OpKind op, std::vector<ValueId> inputs,
                                             const Attributes& attributes,
                                             std::string_view suffix) {
  return builder_.append(op, std::move(inputs), attributes,
                         fmt::format("grad/{}.{}", node_.name, suffix), Phase::kBackward);
}

bool GradientContext::can_accumulate(const std::vector<std::size_t>& targets) const {
  return std::all_of(targets.begin(), targets.end(), [&](std::size_t i) {
    // The same parameter twice in one node has one sum, which cannot be handed over twice.
    const auto uses = std::count_if(targets.begin(), targets.end(), [&](std::size_t j) {
      return node_.inputs[j] == node_.inputs[i];
    });
    const auto& partial = gradients_[node_.inputs[i]];
    return uses == 1 && wanted_[node_.inputs[i]] && partial && partial->owned;
  });
}

std::vector<ValueId> GradientContext::append_accumulating(OpKind op, std::vector<ValueId> inputs,
                                                          const Attributes& attributes,
                                                          std::string_view suffix,
                                                          const std::vector<std::size_t>& targets) {
  const bool accumulate = can_accumulate(targets);
  if (accumulate) {
    for (std::size_t i : targets) inputs.push_back(gradients_[node_.inputs[i]]->value);
  }
  const auto outputs =
      builder_.append(op, std::move(inputs), attributes,
                      fmt::format("grad/{}.{}", node_.name, suffix), Phase::kBackward, accumulate);
  const std::vector<int>& accumulated = op_info(op).accumulated;
  for (std::size_t k = 0; k < targets.size(); ++k) {
    const ValueId part = outputs[static_cast<std::size_t>(accumulated[k])];
    auto& partial = gradients_[node_.inputs[targets[k]]];
    if (accumulate || (wants(targets[k]) && !partial)) {
      partial = {part, true};
    } else {
      contribute(targets[k], part);
    }
  }
  return outputs;
}

void GradientContext::contribute(std::size_t i, ValueId gradient) {
  if (!wants(i)) return;
  auto& partial = gradients_[node_.inputs[i]];
  if (!partial) {
    partial = {gradient, false};
    return;
  }
  partial = {
      append(OpKind::kAdd, {partial->value, gradient}, NoAttributes{}, fmt::format("sum{}", i))[0],
      true};
}

}  // namespace reprise::graph
