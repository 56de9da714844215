// Gradients of convolution and matrix products.

#include "graph/gradient.h"
#include "graph/gradient_rules.h"

namespace reprise::graph {

void gradient_conv2d(GradientContext& c) {
  auto attributes = c.attributes<Conv2dAttributes>();
  const Shape x = c.shape(c.input(0));
  const Shape weight = c.shape(c.input(1));
  const ValueId dy = c.gradient();
  if (c.wants(1)) {
    attributes.kernel = {weight[2], weight[3]};
    c.append_accumulating(OpKind::kConv2dGradWeight, {c.input(0), dy}, attributes, "dw", {1});
    attributes.kernel = {};
  }
  if (c.wants(2))
    c.append_accumulating(OpKind::kBiasGrad, {dy}, AxisAttributes{.axis = 1}, "db", {2});
  if (c.wants(0)) {
    attributes.input_size = {x[2], x[3]};
    c.contribute(0, c.append(OpKind::kConv2dGradInput, {dy, c.input(1)}, attributes, "dx")[0]);
  }
}

namespace {

// dy in the dtype of the operands, where the product was kept in f32.
ValueId gradient_like(GradientContext& c, ValueId operand) {
  const ValueId dy = c.gradient();
  if (c.dtype(dy) == c.dtype(operand)) return dy;
  return c.append(OpKind::kCast, {dy}, CastAttributes{c.dtype(operand)}, "dy")[0];
}

}  // namespace

// With A = op(a) and B = op(b): dA = dy B^T and dB = A^T dy; a transposed operand swaps the
// factors.
void gradient_matmul(GradientContext& c) {
  const bool ta = c.attributes<MatmulAttributes>().transpose_a;
  const bool tb = c.attributes<MatmulAttributes>().transpose_b;
  const ValueId a = c.input(0);
  const ValueId b = c.input(1);
  const ValueId dy = gradient_like(c, a);
  // The gradient of a weight is f32, whatever the products are made of.
  const auto wide = [&](std::size_t i) { return c.dtype(a) == DType::kBF16 && c.keeps_f32(i); };
  if (c.wants(1) && !tb) {
    c.append_accumulating(OpKind::kMatmul, {a, dy}, MatmulAttributes{!ta, false, wide(1)}, "db",
                          {1});
  } else if (c.wants(1)) {
    c.append_accumulating(OpKind::kMatmul, {dy, a}, MatmulAttributes{true, ta, wide(1)}, "db", {1});
  }
  if (c.wants(2)) {
    const auto columns = static_cast<std::int64_t>(c.shape(dy).size()) - 1;
    c.append_accumulating(OpKind::kBiasGrad, {dy}, AxisAttributes{.axis = columns}, "dbias", {2});
  }
  if (c.wants(0) && !ta) {
    c.append_accumulating(OpKind::kMatmul, {dy, b}, MatmulAttributes{false, !tb, wide(0)}, "da",
                          {0});
  } else if (c.wants(0)) {
    c.append_accumulating(OpKind::kMatmul, {b, dy}, MatmulAttributes{tb, true, wide(0)}, "da", {0});
  }
}

}  // namespace reprise::graph
