#include "graph/node_rules.h"

#include <cmath>
#include <type_traits>

#include "base/error.h"

namespace reprise::graph {
namespace {

std::string input_range(const OpInfo& info) {
  if (info.max_inputs < 0) return fmt::format("at least {}", info.min_inputs);
  if (info.max_inputs == info.min_inputs) return fmt::format("{}", info.min_inputs);
  return fmt::format("{} to {}", info.min_inputs, info.max_inputs);
}

void check_inputs(const Graph& graph, const Node& node, const OpInfo& info) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!graph.values.contains(node.inputs[i])) {
      throw base::input_error("{} '{}': input {} is no value of graph '{}', which has {} values",
                              info.name, node.name, i, graph.name, graph.values.size());
    }
  }
  if (node.accumulate && info.accumulated.empty()) {
    throw base::input_error("{} '{}': the op has no accumulate form", info.name, node.name);
  }
  const auto sums = static_cast<std::int64_t>(node.accumulate ? info.accumulated.size() : 0);
  const auto own = static_cast<std::int64_t>(node.inputs.size()) - sums;
  if (own < info.min_inputs || (info.max_inputs >= 0 && own > info.max_inputs)) {
    throw base::input_error(
        "{} '{}': takes {} inputs{}, got {}", info.name, node.name, input_range(info),
        sums > 0 ? fmt::format(" and {} running sums", sums) : "", node.inputs.size());
  }
}

void check_bf16(const Graph& graph, const Node& node, const OpInfo& info) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Value& value = graph.values[node.inputs[i]];
    if (value.dtype == DType::kBF16 && !may_be_bf16(info, i)) {
      throw base::input_error("{} '{}': input {}, '{}', is bf16, the op takes it as f32; cast it",
                              info.name, node.name, i, value.name);
    }
  }
}

void check_attributes(const Node& node, const OpInfo& info) {
  if (node.attributes.index() != info.attributes) {
    throw base::input_error("{} '{}': carries the attributes of another op (kind {}, not {})",
                            info.name, node.name, node.attributes.index(), info.attributes);
  }
  visit(node.attributes, [&](std::string_view field, const auto& content) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(content)>, double>) {
      if (std::isnan(content)) {
        throw base::input_error("{} '{}': {} is not a number", info.name, node.name, field);
      }
    }
  });
}

}  // namespace

std::vector<InferredValue> infer_checked(const Graph& graph, const Node& node) {
  const OpInfo& info = op_info(node.op);
  check_inputs(graph, node, info);
  check_bf16(graph, node, info);
  check_attributes(node, info);
  return info.infer(graph, node);
}

void check_shape(std::string_view value, const Shape& shape, DType dtype) {
  Bytes bytes = dtype_bytes(dtype);
  for (Dim dim : shape) {
    if (dim < 1) {
      throw base::input_error("value '{}': every axis must be at least 1, its shape is {}", value,
                              shape_text(shape));
    }
    if (__builtin_mul_overflow(bytes, dim, &bytes)) {
      throw base::input_error("value '{}': the bytes of {} {} go beyond 2^63", value,
                              dtype_name(dtype), shape_text(shape));
    }
  }
}

Role output_role(OpKind op, Phase phase) {
  const bool sum = op == OpKind::kAllReduce || op == OpKind::kAwait;  // over ranks, of gradients
  if (!op_info(op).recomputable && !sum) return Role::kUpdate;
  return phase == Phase::kForward ? Role::kActivation : Role::kGradient;
}

}  // namespace reprise::graph
