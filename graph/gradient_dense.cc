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

// With A = op(a) and B = op(b): dA = dy B^T and dB = A^T dy; a transposed operand swaps the
// factors.
void gradient_matmul(GradientContext& c) {
  const auto [ta, tb] = c.attributes<MatmulAttributes>();
  const ValueId a = c.input(0);
  const ValueId b = c.input(1);
  const ValueId dy = c.gradient();
  if (c.wants(1) && !tb) {
    c.append_accumulating(OpKind::kMatmul, {a, dy}, MatmulAttributes{!ta, false}, "db", {1});
  } else if (c.wants(1)) {
    c.append_accumulating(OpKind::kMatmul, {dy, a}, MatmulAttributes{true, ta}, "db", {1});
  }
  if (c.wants(2)) {
    const auto columns = static_cast<std::int64_t>(c.shape(dy).size()) - 1;
    c.append_accumulating(OpKind::kBiasGrad, {dy}, AxisAttributes{.axis = columns}, "dbias", {2});
  }
  if (c.wants(0) && !ta) {
    c.append_accumulating(OpKind::kMatmul, {dy, b}, MatmulAttributes{false, !tb}, "da", {0});
  } else if (c.wants(0)) {
    c.append_accumulating(OpKind::kMatmul, {b, dy}, MatmulAttributes{tb, true}, "da", {0});
  }
}

}  // namespace reprise::graph
