// Gradients of pointwise ops. Relu, sigmoid and tanh read their output, so that the buffer of their
// input is free early.

#include "graph/gradient.h"
#include "graph/gradient_rules.h"

namespace reprise::graph {
namespace {

// Gradient ops that read the output (or the input) and dy.
void contribute_from(GradientContext& c, OpKind op, ValueId read) {
  c.contribute(0, c.append(op, {read, c.gradient()}, NoAttributes{}, "dx")[0]);
}

}  // namespace

void gradient_relu(GradientContext& c) {
  contribute_from(c, OpKind::kReluGrad, c.output(0));
}
void gradient_sigmoid(GradientContext& c) {
  contribute_from(c, OpKind::kSigmoidGrad, c.output(0));
}
void gradient_tanh(GradientContext& c) {
  contribute_from(c, OpKind::kTanhGrad, c.output(0));
}
void gradient_gelu(GradientContext& c) {
  contribute_from(c, OpKind::kGeluGrad, c.input(0));
}

void gradient_add(GradientContext& c) {
  const ValueId dy = c.gradient();
  c.contribute(0, dy);
  c.contribute(1, dy);
}

void gradient_mul(GradientContext& c) {
  const ValueId dy = c.gradient();
  if (c.wants(0))
    c.contribute(0, c.append(OpKind::kMul, {dy, c.input(1)}, NoAttributes{}, "da")[0]);
  if (c.wants(1))
    c.contribute(1, c.append(OpKind::kMul, {dy, c.input(0)}, NoAttributes{}, "db")[0]);
}

void gradient_scale(GradientContext& c) {
  c.contribute(0, c.append(OpKind::kScale, {c.gradient()}, c.node().attributes, "dx")[0]);
}

void gradient_cast(GradientContext& c) {
  const DType of_x = c.dtype(c.input(0));
  c.contribute(0, c.append(OpKind::kCast, {c.gradient()}, CastAttributes{of_x}, "dx")[0]);
}

void gradient_dropout(GradientContext& c) {
  c.contribute(0, c.append(OpKind::kDropoutGrad, {c.gradient()}, c.node().attributes, "dx")[0]);
}

}  // namespace reprise::graph
