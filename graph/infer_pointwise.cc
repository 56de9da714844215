// Ops that work element by element.

#include "graph/infer.h"

namespace reprise::graph {

Inferred infer_unary(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  c.require_dtype(0, "x", DType::kF32);
  return {{c.shape(0)}};
}

Inferred infer_same_pair(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  c.require_dtype(0, "the first input", DType::kF32);
  c.require_dtype(1, "the second input", DType::kF32);
  c.require(c.shape(0) == c.shape(1), "the inputs have shapes {} and {}; broadcast one first",
            shape_text(c.shape(0)), shape_text(c.shape(1)));
  return {{c.shape(0)}};
}

Inferred infer_add(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  if (c.dtype(0) != DType::kI32) return infer_same_pair(graph, node);
  c.require_dtype(1, "the second input", DType::kI32);
  c.require_shape(1, "the second input", c.shape(0));
  return {{c.shape(0), DType::kI32}};
}

Inferred infer_dropout(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<DropoutAttributes>();
  c.require_dtype(0, "x", DType::kF32);
  c.require(a.probability >= 0 && a.probability < 1, "probability must lie in [0, 1), got {}",
            a.probability);
  c.require(a.stream >= 0 && a.stream < (std::int64_t{1} << 32),
            "stream must lie in [0, 2^32), got {}", a.stream);
  return {{c.shape(0)}};
}

Inferred infer_positive(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  c.require_dtype(0, "x", DType::kF32);
  return {{c.shape(0), DType::kI32}};
}

}  // namespace reprise::graph
