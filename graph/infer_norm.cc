// Batch norm and layer norm.

#include "graph/infer.h"

namespace reprise::graph {
namespace {

void require_epsilon(const InferContext& c) {
  const double epsilon = c.attributes<NormAttributes>().epsilon;
  c.require(epsilon >= 0, "epsilon must not be negative, got {}", epsilon);
}

Shape channels(const InferContext& c) {
  c.require(c.shape(0).size() >= 2, "x must have at least the axes [N,C], got {}",
            shape_text(c.shape(0)));
  require_epsilon(c);
  return {c.shape(0)[1]};
}

Shape leading(const Shape& shape) {
  return {shape.begin(), shape.end() - 1};
}

Shape features(const InferContext& c) {
  c.require(!c.shape(0).empty(), "x must have at least one axis, got []");
  require_epsilon(c);
  return {c.shape(0).back()};
}

// Of "parts" i32[D+1] the number of ranks, D >= 1.
Dim ranks_of(const InferContext& c, std::size_t input) {
  c.require_dtype(input, "parts", DType::kI32);
  c.require_rank(input, "parts", 1);
  c.require(c.shape(input)[0] >= 2,
            "parts names a rank and the items of each, so it has at least "
            "2 elements, got {}",
            c.shape(input)[0]);
  return c.shape(input)[0] - 1;
}

}  // namespace

Inferred infer_batch_norm(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const DType type = c.float_type({{0, "x"}});
  const Shape channel = channels(c);
  c.require_float(1, "gamma", channel);
  c.require_float(2, "beta", channel);
  // One value per channel has no variance: the sample variance for the running one would be 0 / 0.
  c.require(
      element_count(c.shape(0)) / channel[0] > 1,
      "training needs more than one value per channel, x {} has one; use a larger batch or image",
      shape_text(c.shape(0)));
  return {{c.shape(0), type}, {channel}, {channel}};
}

Inferred infer_batch_norm_grad(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const Shape channel = channels(c);
  const DType type = c.float_type({{0, "x"}, {1, "dy"}});
  c.require_shape(1, "dy", c.shape(0));
  c.require_float(2, "mean", channel);
  c.require_float(3, "var", channel);
  c.require_float(4, "gamma", channel);
  return {{c.shape(0), type}, {channel}, {channel}};
}

Inferred infer_batch_norm_inference(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const DType type = c.float_type({{0, "x"}});
  const Shape channel = channels(c);
  c.require_float(1, "gamma", channel);
  c.require_float(2, "beta", channel);
  c.require_float(3, "running_mean", channel);
  c.require_float(4, "running_var", channel);
  return {{c.shape(0), type}};
}

Inferred infer_batch_norm_update(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<RunningUpdateAttributes>();
  c.require(a.rate >= 0 && a.rate <= 1, "rate must lie in [0, 1], got {}", a.rate);
  c.require(a.count > 1, "count must be more than 1, got {}", a.count);
  c.require_rank(0, "running_mean", 1);
  const Shape& channel = c.shape(0);
  c.require_float(0, "running_mean", channel);
  c.require_float(1, "running_var", channel);
  const std::size_t inputs = c.inputs() - (takes_norm(a) ? 1 : 0);
  if (takes_norm(a)) c.require_float(inputs, "norm", {});
  c.require(inputs >= 4 && inputs % 2 == 0,
            "takes a mean and a variance of each batch after the running ones{}, got {} inputs",
            takes_norm(a) ? ", then a norm" : "", c.inputs());
  for (std::size_t i = 2; i < inputs; ++i) {
    c.require_float(i, i % 2 == 0 ? "mean" : "var", channel);
  }
  return {{channel}, {channel}};
}

Inferred infer_batch_norm_moments(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  (void)c.float_type({{0, "x"}});
  c.require(c.shape(0).size() >= 2, "x must have at least the axes [N,C], got {}",
            shape_text(c.shape(0)));
  const Shape moments{ranks_of(c, 1), 2, c.shape(0)[1]};
  (void)c.elements(moments, "moments");
  return {{moments}};
}

Inferred infer_batch_norm_combine(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const Dim values = c.attributes<CombineAttributes>().values;
  c.require(values >= 1, "values must be at least 1, got {}", values);
  c.require_rank(0, "moments", 3);
  c.require_float(0, "moments", {ranks_of(c, 1), 2, c.shape(0)[2]});
  const Shape channel{c.shape(0)[2]};
  return {{channel}, {channel}, {channel}};
}

Inferred infer_batch_norm_apply(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const DType type = c.float_type({{0, "x"}});
  const Shape channel = channels(c);
  c.require_float(1, "gamma", channel);
  c.require_float(2, "beta", channel);
  c.require_float(3, "mean", channel);
  c.require_float(4, "var", channel);
  (void)ranks_of(c, 5);
  return {{c.shape(0), type}};
}

Inferred infer_batch_norm_grad_sums(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const Shape channel = channels(c);
  (void)c.float_type({{0, "x"}, {1, "dy"}});
  c.require_shape(1, "dy", c.shape(0));
  c.require_float(2, "mean", channel);
  c.require_float(3, "var", channel);
  (void)ranks_of(c, 4);
  return {{Shape{2, channel[0]}}};
}

Inferred infer_batch_norm_grad_input(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const Shape channel = channels(c);
  const DType type = c.float_type({{0, "x"}, {1, "dy"}});
  c.require_shape(1, "dy", c.shape(0));
  c.require_float(2, "mean", channel);
  c.require_float(3, "var", channel);
  c.require_float(4, "gamma", channel);
  c.require_float(5, "sums", {2, channel[0]});
  (void)ranks_of(c, 6);
  return {{c.shape(0), type}, {channel}, {channel}};
}

Inferred infer_layer_norm(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const DType type = c.float_type({{0, "x"}});
  const Shape feature = features(c);
  c.require_float(1, "gamma", feature);
  c.require_float(2, "beta", feature);
  return {{c.shape(0), type}, {leading(c.shape(0))}, {leading(c.shape(0))}};
}

Inferred infer_layer_norm_grad(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const Shape feature = features(c);
  const DType type = c.float_type({{0, "x"}, {1, "dy"}});
  c.require_shape(1, "dy", c.shape(0));
  c.require_float(2, "mean", leading(c.shape(0)));
  c.require_float(3, "var", leading(c.shape(0)));
  c.require_float(4, "gamma", feature);
  return {{c.shape(0), type}, {feature}, {feature}};
}

}  // namespace reprise::graph
