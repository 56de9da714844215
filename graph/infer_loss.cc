// Losses and metrics.

#include "graph/infer.h"

namespace reprise::graph {
namespace {

void require_logits(const InferContext& c) {
  c.require_dtype(0, "logits", DType::kF32);
  c.require_rank(0, "logits", 2);
  c.require(c.shape(0)[1] >= 1, "logits {} have no class", shape_text(c.shape(0)));
  c.require_dtype(1, "labels", DType::kI32);
  c.require_shape(1, "labels", {c.shape(0)[0]});
}

}  // namespace

Inferred infer_softmax_cross_entropy(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  require_logits(c);
  return {{Shape{}}};
}

Inferred infer_softmax_cross_entropy_grad(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  require_logits(c);
  c.require_float(2, "dloss", {});
  return {{c.shape(0)}};
}

Inferred infer_correct_count(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  require_logits(c);
  return {{Shape{}, DType::kI32}};
}

Inferred infer_mean_squared_error(const Graph& graph, const Node& node) {
  (void)infer_same_pair(graph, node);
  return {{Shape{}}};
}

Inferred infer_mean_squared_error_grad(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  c.require_float(2, "dloss", {});
  return infer_same_pair(graph, node);
}

}  // namespace reprise::graph
