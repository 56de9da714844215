// Ops that work element by element.

#include "graph/infer.h"

namespace reprise::graph {

Inferred infer_unary(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const DType type = c.float_type({{0, "x"}});
  return {{c.shape(0), type}};
}

Inferred infer_same_pair(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const DType type = c.float_type({{0, "the first input"}, {1, "the second input"}});
  c.require(c.shape(0) == c.shape(1), "the inputs have shapes {} and {}; broadcast one first",
            shape_text(c.shape(0)), shape_text(c.shape(1)));
  return {{c.shape(0), type}};
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
  const DType type = c.float_type({{0, "x"}});
  c.require(a.probability >= 0 && a.probability < 1, "probability must lie in [0, 1), got {}",
            a.probability);
  c.require(a.stream >= 0 && a.stream < (std::int64_t{1} << 32),
            "stream must lie in [0, 2^32), got {}", a.stream);
  return {{c.shape(0), type}};
}

Inferred infer_positive(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  c.require_dtype(0, "x", DType::kF32);
  return {{c.shape(0), DType::kI32}};
}

Inferred infer_cast(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const DType from = c.dtype(0);
  const DType to = c.attributes<CastAttributes>().dtype;
  c.require(is_float(from) && is_float(to), "casts between f32 and bf16, not from {} to {}",
            dtype_name(from), dtype_name(to));
  c.require(from != to, "x is {} already", dtype_name(from));
  return {{c.shape(0), to}};
}

}  // namespace reprise::graph
