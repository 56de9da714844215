// Pooling and resampling of images.

#include "graph/infer.h"

namespace reprise::graph {
namespace {

Shape pooled(const InferContext& c, const Pool2dAttributes& a, const Shape& x) {
  c.require(x.size() == 4, "x must have 4 axes [N,C,H,W], got {}", shape_text(x));
  c.require_pair(a.kernel, "kernel", 1);
  c.require_pair(a.stride, "stride", 1);
  c.require_pair(a.padding, "padding", 0);
  Shape y{x[0], x[1], 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    c.require(a.padding[i] <= a.kernel[i] / 2, "padding {} is more than half of kernel {}",
              a.padding[i], a.kernel[i]);
    const Dim padded = c.add(x[i + 2], 2 * a.padding[i], "padded image");
    c.require(a.kernel[i] <= padded, "kernel {} is larger than the padded image {} of x {}",
              a.kernel[i], padded, shape_text(x));
    y[i + 2] = (padded - a.kernel[i]) / a.stride[i] + 1;
  }
  return y;
}

// x of a pooling op, from dy and the attributes of its gradient op.
Shape pool_input(const InferContext& c, const Pool2dAttributes& a) {
  c.require_rank(0, "dy", 4);
  c.require_pair(a.input_size, "input_size", 1);
  return {c.shape(0)[0], c.shape(0)[1], a.input_size[0], a.input_size[1]};
}

std::int64_t upsample_factor(const InferContext& c) {
  const std::int64_t factor = c.attributes<UpsampleAttributes>().factor;
  c.require(factor >= 1, "factor must be at least 1, got {}", factor);
  return factor;
}

}  // namespace

Inferred infer_max_pool(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<Pool2dAttributes>();
  const DType type = c.float_type({{0, "x"}});
  const Shape y = pooled(c, a, c.shape(0));
  c.require(c.mul(a.kernel[0], a.kernel[1], "window") <= 256,
            "a window of {}x{} has more than 256 positions", a.kernel[0], a.kernel[1]);
  return {{y, type}, {y, DType::kU8}};
}

Inferred infer_max_pool_grad(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<Pool2dAttributes>();
  const Shape x = pool_input(c, a);
  const DType type = c.float_type({{0, "dy"}});
  c.require_shape(0, "dy", pooled(c, a, x));
  c.require_dtype(1, "indices", DType::kU8);
  c.require_shape(1, "indices", c.shape(0));
  return {{x, type}};
}

Inferred infer_avg_pool(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const DType type = c.float_type({{0, "x"}});
  return {{pooled(c, c.attributes<Pool2dAttributes>(), c.shape(0)), type}};
}

Inferred infer_avg_pool_grad(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<Pool2dAttributes>();
  const Shape x = pool_input(c, a);
  const DType type = c.float_type({{0, "dy"}});
  c.require_shape(0, "dy", pooled(c, a, x));
  return {{x, type}};
}

Inferred infer_global_avg_pool(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const DType type = c.float_type({{0, "x"}});
  c.require_rank(0, "x", 4);
  return {{Shape{c.shape(0)[0], c.shape(0)[1]}, type}};
}

Inferred infer_global_avg_pool_grad(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<Pool2dAttributes>();
  const DType type = c.float_type({{0, "dy"}});
  c.require_rank(0, "dy", 2);
  c.require_pair(a.input_size, "input_size", 1);
  return {{Shape{c.shape(0)[0], c.shape(0)[1], a.input_size[0], a.input_size[1]}, type}};
}

Inferred infer_upsample(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const std::int64_t factor = upsample_factor(c);
  const DType type = c.float_type({{0, "x"}});
  c.require_rank(0, "x", 4);
  const Shape& x = c.shape(0);
  return {{Shape{x[0], x[1], c.mul(x[2], factor, "height"), c.mul(x[3], factor, "width")}, type}};
}

Inferred infer_upsample_grad(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const std::int64_t factor = upsample_factor(c);
  const DType type = c.float_type({{0, "dy"}});
  c.require_rank(0, "dy", 4);
  const Shape& dy = c.shape(0);
  c.require(dy[2] % factor == 0 && dy[3] % factor == 0, "dy {} is no multiple of factor {}",
            shape_text(dy), factor);
  return {{Shape{dy[0], dy[1], dy[2] / factor, dy[3] / factor}, type}};
}

}  // namespace reprise::graph
