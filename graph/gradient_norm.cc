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
void gradient_layer_norm(GradientContext& c) {
  contribute_norm(c, OpKind::kLayerNormGrad);
}

}  // namespace reprise::graph
