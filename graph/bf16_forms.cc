#include "graph/bf16_forms.h"

namespace reprise::graph {

void add_bf16_forms(std::vector<OpInfo>& rows) {
  using enum OpKind;
  struct Form {
    OpKind kind;
    std::vector<int> inputs{0};
    std::vector<int> outputs{0};
  };
  const std::vector<int> none{}, first{0}, pair{0, 1};
  const Form forms[] = {
      {kConv2d, pair, first},
      {kConv2dGradInput, pair, first},
      {kConv2dGradWeight, pair, none},
      {kMatmul, pair, first},
      {kBiasGrad, first, none},
      {kBatchNorm, first, first},
      {kBatchNormGrad, pair, first},
      {kBatchNormInference, first, first},
      {kLayerNorm, first, first},
      {kLayerNormGrad, pair, first},
      {kBatchNormMoments, first, none},
      {kBatchNormApply, first, first},
      {kBatchNormGradSums, pair, none},
      {kBatchNormGradInput, pair, first},
      {kRelu, first, first},
      {kReluGrad, pair, first},
      {kGelu, first, first},
      {kGeluGrad, pair, first},
      {kAdd, pair, first},
      {kDropout, first, first},
      {kDropoutGrad, first, first},
      {kMaxPool, first, first},
      {kMaxPoolGrad, first, first},
      {kAvgPool, first, first},
      {kAvgPoolGrad, first, first},
      {kGlobalAvgPool, first, first},
      {kGlobalAvgPoolGrad, first, first},
      {kUpsample, first, first},
      {kUpsampleGrad, first, first},
      {kReshape, first, first},
      {kConcat, {-1}, first},
      {kSlice, first, first},
      {kSliceGrad, first, first},
      {kLstm, {0, 1, 3, 4}, {0, 1, 3}},
      {kLstmGrad, {0, 1, 3, 4, 6, 7, 9, 10, 11}, pair},
      {kGru, {0, 1, 2, 3}, {0, 1, 2}},
      {kGruGrad, {0, 1, 2, 3, 5, 6, 7, 8, 9}, pair},
      {kCast, first, first},
      {kReorder, first, first},
  };
  for (const Form& form : forms) {
    OpInfo& row = rows[static_cast<std::size_t>(form.kind)];
    row.bf16_inputs = form.inputs;
    row.bf16_outputs = form.outputs;
  }
}

}  // namespace reprise::graph
