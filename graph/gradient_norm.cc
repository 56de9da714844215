// Gradients of batch norm and layer norm.

#include "graph/gradient.h"
#include "graph/gradient_rules.h"

namespace reprise::graph {
namespace {

// x gamma beta => y mean var: one node makes all three gradients.
void contribute_norm(GradientContext& c, OpKind op) {
  const auto outputs =
      c.append(op, {c.input(0), c.gradient(), c.output(1), c.output(2), c.input(1)},
               c.node().attributes, "dx");
  for (std::size_t i = 0; i < 3; ++i) c.contribute(i, outputs[i]);
}

}  // namespace

void gradient_batch_norm(GradientContext& c) {
  contribute_norm(c, OpKind::kBatchNormGrad);
}
// x gamma beta mean var parts => y: dx is the whole derivative, through the statistics too. What is
// summed over the ranks for it are the gradients of gamma and beta.
void gradient_batch_norm_apply(GradientContext& c) {
  const ValueId x = c.input(0), gamma = c.input(1);
  const ValueId mean = c.input(3), var = c.input(4), parts = c.input(5);
  const ValueId dy = c.gradient();
  const NormAttributes norm = c.attributes<NormAttributes>();
  ValueId sums = c.append(OpKind::kBatchNormGradSums, {x, dy, mean, var, parts}, norm, "sums")[0];
  sums = c.append(OpKind::kAllReduce, {sums}, NoAttributes{}, "reduce")[0];
  sums = c.append(OpKind::kAwait, {sums}, NoAttributes{}, "await")[0];
  const auto outputs =
      c.append(OpKind::kBatchNormGradInput, {x, dy, mean, var, gamma, sums, parts}, norm, "dx");
  for (std::size_t i = 0; i < 3; ++i) c.contribute(i, outputs[i]);
}
void gradient_layer_norm(GradientContext& c) {
  contribute_norm(c, OpKind::kLayerNormGrad);
}

}  // namespace reprise::graph
