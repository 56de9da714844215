#pragma once

// The rules of a single node that building and validating share.

#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace reprise::graph {

// Shapes and dtypes of the node's outputs, after checking everything that can be said of the node
// alone: known inputs, their number, its attributes, its accumulate form, and its op's own rules.
// Throws Error(kInput) naming the op, the node, both facts and the rule.
[[nodiscard]] std::vector<InferredValue> infer_checked(const Graph& graph, const Node& node);

// Throws Error(kInput) naming the value unless every axis is at least 1 and its bytes can be
// counted.
void check_shape(std::string_view value, const Shape& shape, DType dtype);

// The role of the outputs of a node.
[[nodiscard]] Role output_role(OpKind op, Phase phase);

}  // namespace reprise::graph
