// Gradients of pooling and resampling.

#include <utility>

#include "graph/gradient.h"
#include "graph/gradient_rules.h"

namespace reprise::graph {
namespace {

Ints image_size(const Shape& x) {
  return {x[2], x[3]};
}

void contribute_pool(GradientContext& c, OpKind op, std::vector<ValueId> inputs) {
  auto attributes = c.attributes<Pool2dAttributes>();
  attributes.input_size = image_size(c.shape(c.input(0)));
  c.contribute(0, c.append(op, std::move(inputs), attributes, "dx")[0]);
}

}  // namespace

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

}  // namespace reprise::graph
