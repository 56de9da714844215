// Gradients of losses.

#include "graph/gradient.h"
#include "graph/gradient_rules.h"

namespace reprise::graph {

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
