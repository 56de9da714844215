// Gradients of embeddings and recurrent layers.

#include "graph/gradient.h"
#include "graph/gradient_rules.h"

namespace reprise::graph {

void gradient_embedding(GradientContext& c) {
  const EmbeddingAttributes attributes{c.shape(c.input(0))[0]};
  c.append_accumulating(OpKind::kEmbeddingGrad, {c.input(1), c.gradient()}, attributes, "dtable",
                        {0});
}

// The gradient of a carried state that nobody reads is zeros.
void gradient_lstm(GradientContext& c) {
  std::vector<ValueId> inputs = c.node().inputs;
  inputs.insert(inputs.end(), c.node().outputs.begin(), c.node().outputs.end());
  for (std::size_t output = 0; output < 3; ++output) inputs.push_back(c.gradient(output));
  const auto outputs =
      c.append_accumulating(OpKind::kLstmGrad, inputs, NoAttributes{}, "dx", {3, 4, 5});
  for (std::size_t i = 0; i < 3; ++i) c.contribute(i, outputs[i]);
}

void gradient_gru(GradientContext& c) {
  std::vector<ValueId> inputs = c.node().inputs;
  inputs.insert(inputs.end(), c.node().outputs.begin(), c.node().outputs.end());
  for (std::size_t output = 0; output < 2; ++output) inputs.push_back(c.gradient(output));
  const auto outputs =
      c.append_accumulating(OpKind::kGruGrad, inputs, NoAttributes{}, "dx", {2, 3, 4});
  for (std::size_t i = 0; i < 2; ++i) c.contribute(i, outputs[i]);
}

}  // namespace reprise::graph
