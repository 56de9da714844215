// Gradients of pointwise ops, pooling and losses.

#include "fmt/format.h"

#include "graph/gradient.h"
#include "graph/gradient_rules.h"

namespace reprise::graph {
namespace {

// Gradient ops that read the output (or the input) and dy.
void contribute_from(GradientContext& c, OpKind op, ValueId read) {
  c.contribute(0, c.append(op, {read, c.gradient()}, NoAttributes{}, "dx")[0]);
}

Ints image_size(const Shape& x) {
  return {x[2], x[3]};
}

void contribute_pool(GradientContext& c, OpKind op, std::vector<ValueId> inputs) {
  auto attributes = c.attributes<Pool2dAttributes>();
  attributes.input_size = image_size(c.shape(c.input(0)));
  c.contribute(0, c.append(op, std::move(inputs), attributes, "dx")[0]);
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

void gradient_dropout(GradientContext& c) {
  c.contribute(0, c.append(OpKind::kDropoutGrad, {c.gradient()}, c.node().attributes, "dx")[0]);
}

void gradient_max_pool(GradientContext& c) {
  contribute_pool(c, OpKind::kMaxPoolGrad, {c.gradient(), c.output(1)});
}
void gradient_avg_pool(GradientContext& c) {
  contribute_pool(c, OpKind::kAvgPoolGrad, {c.gradient()});
}

void gradient_global_avg_pool(GradientContext& c) {
  Pool2dAttributes attributes;
  attributes.input_size = image_size(c.shape(c.input(0)));
  c.contribute(0, c.append(OpKind::kGlobalAvgPoolGrad, {c.gradient()}, attributes, "dx")[0]);
}

void gradient_upsample(GradientContext& c) {
  c.contribute(0, c.append(OpKind::kUpsampleGrad, {c.gradient()}, c.node().attributes, "dx")[0]);
}

void gradient_softmax_cross_entropy(GradientContext& c) {
  c.contribute(0, c.append(OpKind::kSoftmaxCrossEntropyGrad, {c.input(0), c.input(1), c.gradient()},
                           c.node().attributes, "dlogits")[0]);
}

void gradient_mean_squared_error(GradientContext& c) {
  const ValueId dprediction =
      c.append(OpKind::kMeanSquaredErrorGrad, {c.input(0), c.input(1), c.gradient()},
               c.node().attributes, "dprediction")[0];
  c.contribute(0, dprediction);
  if (c.wants(1))
    c.contribute(1, c.append(OpKind::kScale, {dprediction}, ScaleAttributes{-1.0}, "dtarget")[0]);
}

}  // namespace reprise::graph
