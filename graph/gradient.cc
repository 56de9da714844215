#include "graph/gradient.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace reprise::graph {

ValueId GradientContext::gradient(std::size_t output) {
  const auto& partial = gradients_[node_.outputs[output]];
  if (partial) return partial->value;
  const ValueId value = node_.outputs[output];
  const std::string name = fmt::format("zeros{}", output);
  const ValueId zeros = append(OpKind::kFill, {}, ShapeAttributes{shape(value), 0.0}, name)[0];
  if (dtype(value) == DType::kF32) return zeros;
  return append(OpKind::kCast, {zeros}, CastAttributes{dtype(value)},
                fmt::format("{}.{}", name, dtype_name(dtype(value))))[0];
}

ValueId GradientContext::target(std::size_t i, DType gradient) const {
  const Graph& graph = builder_.graph();
  const ValueId value = node_.inputs[i];
  const NodeId producer = graph.values[value].producer;
  if (dtype(value) == gradient || !producer.valid()) return value;
  if (graph.nodes[producer].op != OpKind::kCast) return value;
  const ValueId cast = graph.nodes[producer].inputs[0];
  return wanted_[cast] ? cast : value;
}

bool GradientContext::keeps_f32(std::size_t i) const {
  return dtype(target(i, DType::kF32)) == DType::kF32;
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
    const auto& partial = gradients_[target(i, DType::kF32)];
    return uses == 1 && wants(i) && partial && partial->owned && keeps_f32(i);
  });
}

std::vector<ValueId> GradientContext::append_accumulating(OpKind op, std::vector<ValueId> inputs,
                                                          const Attributes& attributes,
                                                          std::string_view suffix,
                                                          const std::vector<std::size_t>& targets) {
  const bool accumulate = can_accumulate(targets);
  if (accumulate) {
    for (std::size_t i : targets) inputs.push_back(gradients_[target(i, DType::kF32)]->value);
  }
  auto outputs =
      builder_.append(op, std::move(inputs), attributes,
                      fmt::format("grad/{}.{}", node_.name, suffix), Phase::kBackward, accumulate);
  const std::vector<int>& accumulated = op_info(op).accumulated;
  for (std::size_t k = 0; k < targets.size(); ++k) {
    const ValueId part = outputs[static_cast<std::size_t>(accumulated[k])];
    const ValueId value = target(targets[k], dtype(part));
    auto& partial = gradients_[value];
    if (accumulate || (wants(targets[k]) && !partial && dtype(part) == dtype(value))) {
      partial = {part, true};
    } else {
      contribute(targets[k], part);
    }
  }
  return outputs;
}

void GradientContext::contribute(std::size_t i, ValueId gradient) {
  if (!wants(i)) return;
  const ValueId value = target(i, dtype(gradient));
  if (dtype(gradient) != dtype(value)) {
    gradient = append(OpKind::kCast, {gradient}, CastAttributes{dtype(value)},
                      fmt::format("cast{}", i))[0];
  }
  auto& partial = gradients_[value];
  if (!partial) {
    partial = {gradient, false};
    return;
  }
  partial = {
      append(OpKind::kAdd, {partial->value, gradient}, NoAttributes{}, fmt::format("sum{}", i))[0],
      true};
}

}  // namespace reprise::graph
