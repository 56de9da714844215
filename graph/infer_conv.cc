// Convolution and matrix products.

#include "graph/infer.h"

namespace reprise::graph {
namespace {

// floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1, at least 1.
Dim window_output(const InferContext& c, const Conv2dAttributes& a, std::size_t axis, Dim size,
                  Dim kernel) {
  c.require(kernel >= 1, "the kernel must be at least 1, got {} along axis {}", kernel, axis + 2);
  const Dim reach = c.add(c.mul(a.dilation[axis], kernel - 1, "reach of the kernel"), 1, "reach");
  const Dim padded = c.add(size, c.mul(2, a.padding[axis], "padding"), "padded input");
  c.require(reach <= padded, "the kernel reaches over {} of {} padded input pixels along axis {}",
            reach, padded, axis + 2);
  return (padded - reach) / a.stride[axis] + 1;
}

void check_conv_attributes(const InferContext& c, const Conv2dAttributes& a) {
  c.require_pair(a.stride, "stride", 1);
  c.require_pair(a.padding, "padding", 0);
  c.require_pair(a.dilation, "dilation", 1);
  c.require(a.groups >= 1, "groups must be at least 1, got {}", a.groups);
}

void check_conv_weight(const InferContext& c, const Conv2dAttributes& a, Dim channels,
                       const Shape& weight) {
  c.require(weight.size() == 4, "weight must have 4 axes [O,C/groups,KH,KW], got {}",
            shape_text(weight));
  c.require(channels % a.groups == 0, "{} input channels are no multiple of {} groups", channels,
            a.groups);
  c.require(weight[0] % a.groups == 0, "{} output channels are no multiple of {} groups", weight[0],
            a.groups);
  c.require(weight[1] == channels / a.groups,
            "weight {} expects {} input channels per group, x has {}", shape_text(weight),
            weight[1], channels / a.groups);
}

Shape conv_output(const InferContext& c, const Conv2dAttributes& a, const Shape& x,
                  const Shape& weight) {
  check_conv_attributes(c, a);
  check_conv_weight(c, a, x[1], weight);
  return {x[0], weight[0], window_output(c, a, 0, x[2], weight[2]),
          window_output(c, a, 1, x[3], weight[3])};
}

}  // namespace

Inferred infer_conv2d(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const DType type = c.float_type({{0, "x"}, {1, "weight"}});
  c.require_rank(0, "x", 4);
  const Shape y = conv_output(c, c.attributes<Conv2dAttributes>(), c.shape(0), c.shape(1));
  if (c.inputs() > 2) c.require_float(2, "bias", {y[1]});
  return {{y, type}};
}

Inferred infer_conv2d_grad_input(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<Conv2dAttributes>();
  c.require_rank(0, "dy", 4);
  c.require_rank(1, "weight", 4);
  const DType type = c.float_type({{0, "dy"}, {1, "weight"}});
  c.require_pair(a.input_size, "input_size", 1);
  check_conv_attributes(c, a);
  const Dim channels = c.mul(c.shape(1)[1], a.groups, "channels");
  const Shape x{c.shape(0)[0], channels, a.input_size[0], a.input_size[1]};
  c.require_shape(0, "dy", conv_output(c, a, x, c.shape(1)));
  return {{x, type}};
}

Inferred infer_conv2d_grad_weight(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<Conv2dAttributes>();
  (void)c.float_type({{0, "x"}, {1, "dy"}});
  c.require_rank(0, "x", 4);
  c.require_rank(1, "dy", 4);
  c.require_pair(a.kernel, "kernel", 1);
  c.require(a.groups >= 1 && c.shape(0)[1] % a.groups == 0,
            "{} input channels are no multiple of {} groups", c.shape(0)[1], a.groups);
  const Shape weight{c.shape(1)[1], c.shape(0)[1] / a.groups, a.kernel[0], a.kernel[1]};
  c.require_shape(1, "dy", conv_output(c, a, c.shape(0), weight));
  if (node.accumulate) c.require_float(2, "sum", weight);
  return {{weight}};
}

Inferred infer_matmul(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<MatmulAttributes>();
  const Shape& left = c.shape(0);
  const Shape& right = c.shape(1);
  const DType type = c.float_type({{0, "a"}, {1, "b"}});
  c.require(left.size() >= 2 && left.size() == right.size(),
            "a {} and b {} must have the same rank of at least 2", shape_text(left),
            shape_text(right));
  const std::size_t rank = left.size();
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    c.require(left[i] == right[i], "leading axis {} of a is {}, of b {}", i, left[i], right[i]);
  }
  const Dim m = left[rank - (a.transpose_a ? 1 : 2)];
  const Dim k = left[rank - (a.transpose_a ? 2 : 1)];
  const Dim k_right = right[rank - (a.transpose_b ? 1 : 2)];
  const Dim p = right[rank - (a.transpose_b ? 2 : 1)];
  c.require(k == k_right, "a {} has {} columns, b {} has {} rows", shape_text(left), k,
            shape_text(right), k_right);
  Shape y(left.begin(), left.end() - 2);
  y.insert(y.end(), {m, p});
  const std::size_t extra = c.inputs() - (node.accumulate ? 1 : 0);
  if (extra > 2) c.require_float(2, "bias", {p});
  if (node.accumulate) c.require_float(c.inputs() - 1, "sum", y);
  c.require(type == DType::kBF16 || !a.f32_result, "f32_result is for bf16 operands, a is {}",
            dtype_name(type));
  c.require(type == DType::kF32 || !node.accumulate || a.f32_result,
            "bf16 operands add into a sum of f32, so f32_result must be true");
  return {{y, a.f32_result ? DType::kF32 : type}};
}

Inferred infer_bias_grad(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  (void)c.float_type({{0, "dy"}});
  const auto axis =
      static_cast<std::size_t>(c.axis(c.attributes<AxisAttributes>().axis, c.shape(0)));
  const Shape bias{c.shape(0)[axis]};
  if (node.accumulate) c.require_float(1, "sum", bias);
  return {{bias}};
}

}  // namespace reprise::graph
