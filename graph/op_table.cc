// The table of ops: one row each. Column meanings: OpInfo in graph/op.h.

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "graph/bf16_forms.h"
#include "graph/gradient_rules.h"
#include "graph/infer.h"
#include "graph/op.h"

namespace reprise::graph {
namespace {

template <class T, std::size_t I = 0>
constexpr std::size_t index_of() {
  if constexpr (std::is_same_v<std::variant_alternative_t<I, Attributes>, T>) {
    return I;
  } else {
    return index_of<T, I + 1>();
  }
}

using Pairs = std::vector<InplacePair>;

OpInfo row(OpKind kind, std::string_view name, int min_inputs, int max_inputs, int outputs,
           std::size_t attributes, decltype(OpInfo::infer) infer,
           decltype(OpInfo::gradient) gradient, Pairs inplace = {},
           std::vector<int> accumulated = {}) {
  OpInfo info;
  info.kind = kind;
  info.name = name;
  info.min_inputs = min_inputs;
  info.max_inputs = max_inputs;
  info.outputs = outputs;
  info.attributes = attributes;
  info.infer = infer;
  info.gradient = gradient;
  info.inplace = std::move(inplace);
  info.accumulated = std::move(accumulated);
  return info;
}

// The outputs after the first, which has the node's own name.
OpInfo named(OpInfo info, std::vector<std::string_view> further_outputs) {
  info.further_outputs = std::move(further_outputs);
  return info;
}

OpInfo differentiable(int outputs, OpInfo info) {
  info.differentiable = outputs;
  return info;
}

OpInfo differentiable_by(int inputs, OpInfo info) {
  info.differentiable_inputs = inputs;
  return info;
}

OpInfo random(OpInfo info) {
  info.random = true;
  return info;
}

OpInfo once(OpInfo info) {
  info.recomputable = false;
  return info;
}

std::vector<OpInfo> make_table() {
  const std::size_t none = index_of<NoAttributes>();
  const std::size_t conv = index_of<Conv2dAttributes>();
  const std::size_t pool = index_of<Pool2dAttributes>();
  const std::size_t matmul = index_of<MatmulAttributes>();
  const std::size_t norm = index_of<NormAttributes>();
  const std::size_t running = index_of<RunningUpdateAttributes>();
  const std::size_t combine = index_of<CombineAttributes>();
  const std::size_t cast = index_of<CastAttributes>();
  const std::size_t scale = index_of<ScaleAttributes>();
  const std::size_t axis = index_of<AxisAttributes>();
  const std::size_t shape = index_of<ShapeAttributes>();
  const std::size_t reduce = index_of<ReduceAttributes>();
  const std::size_t upsample = index_of<UpsampleAttributes>();
  const std::size_t dropout = index_of<DropoutAttributes>();
  const std::size_t embedding = index_of<EmbeddingAttributes>();
  const std::size_t loss = index_of<LossAttributes>();
  const std::size_t sgd = index_of<SgdAttributes>();
  const std::size_t adam = index_of<AdamAttributes>();
  const std::size_t reorder = index_of<ReorderAttributes>();

  const std::vector<std::string_view> statistics{"mean", "var"};
  const std::vector<std::string_view> norm_grad{"gamma", "beta"};
  const Pairs first{{0, 0, false}};
  const Pairs second{{1, 0, false}};
  const Pairs either{{0, 0, false}, {1, 0, false}};
  const Pairs either_dy_first{{1, 0, false}, {0, 0, false}};

  using enum OpKind;
  // kind, name, inputs from, to, outputs, attributes, inference, gradient, in-place pairs,
  // accumulated outputs
  return {
      row(kConv2d, "conv2d", 2, 3, 1, conv, infer_conv2d, gradient_conv2d),
      row(kConv2dGradInput, "conv2d_grad_input", 2, 2, 1, conv, infer_conv2d_grad_input, nullptr),
      row(kConv2dGradWeight, "conv2d_grad_weight", 2, 2, 1, conv, infer_conv2d_grad_weight, nullptr,
          {}, {0}),
      row(kMatmul, "matmul", 2, 3, 1, matmul, infer_matmul, gradient_matmul, {}, {0}),
      row(kBiasGrad, "bias_grad", 1, 1, 1, axis, infer_bias_grad, nullptr, {}, {0}),
      differentiable(1, named(row(kBatchNorm, "batch_norm", 3, 3, 3, norm, infer_batch_norm,
                                  gradient_batch_norm, first),
                              statistics)),
      named(row(kBatchNormGrad, "batch_norm_grad", 5, 5, 3, norm, infer_batch_norm_grad, nullptr,
                second),
            norm_grad),
      row(kBatchNormInference, "batch_norm_inference", 5, 5, 1, norm, infer_batch_norm_inference,
          nullptr, first),
      once(named(row(kBatchNormUpdate, "batch_norm_update", 4, -1, 2, running,
                     infer_batch_norm_update, nullptr, {{0, 0, true}, {1, 1, true}}),
                 {"var"})),
      row(kBatchNormMoments, "batch_norm_moments", 2, 2, 1, none, infer_batch_norm_moments,
          nullptr),
      named(row(kBatchNormCombine, "batch_norm_combine", 2, 2, 3, combine, infer_batch_norm_combine,
                nullptr),
            {"var", "sample_var"}),
      differentiable_by(3, row(kBatchNormApply, "batch_norm_apply", 6, 6, 1, norm,
                               infer_batch_norm_apply, gradient_batch_norm_apply, first)),
      row(kBatchNormGradSums, "batch_norm_grad_sums", 5, 5, 1, norm, infer_batch_norm_grad_sums,
          nullptr),
      named(row(kBatchNormGradInput, "batch_norm_grad_input", 7, 7, 3, norm,
                infer_batch_norm_grad_input, nullptr, second),
            norm_grad),
      differentiable(1, named(row(kLayerNorm, "layer_norm", 3, 3, 3, norm, infer_layer_norm,
                                  gradient_layer_norm, first),
                              statistics)),
      named(row(kLayerNormGrad, "layer_norm_grad", 5, 5, 3, norm, infer_layer_norm_grad, nullptr,
                second),
            norm_grad),
      row(kRelu, "relu", 1, 1, 1, none, infer_unary, gradient_relu, first),
      row(kReluGrad, "relu_grad", 2, 2, 1, none, infer_same_pair, nullptr, either_dy_first),
      row(kSigmoid, "sigmoid", 1, 1, 1, none, infer_unary, gradient_sigmoid, first),
      row(kSigmoidGrad, "sigmoid_grad", 2, 2, 1, none, infer_same_pair, nullptr, either_dy_first),
      row(kTanh, "tanh", 1, 1, 1, none, infer_unary, gradient_tanh, first),
      row(kTanhGrad, "tanh_grad", 2, 2, 1, none, infer_same_pair, nullptr, either_dy_first),
      row(kGelu, "gelu", 1, 1, 1, none, infer_unary, gradient_gelu, first),
      row(kGeluGrad, "gelu_grad", 2, 2, 1, none, infer_same_pair, nullptr, either_dy_first),
      row(kAdd, "add", 2, 2, 1, none, infer_add, gradient_add, either),
      row(kMul, "mul", 2, 2, 1, none, infer_same_pair, gradient_mul, either),
      row(kScale, "scale", 1, 1, 1, scale, infer_unary, gradient_scale, first),
      random(row(kDropout, "dropout", 1, 1, 1, dropout, infer_dropout, gradient_dropout, first)),
      random(row(kDropoutGrad, "dropout_grad", 1, 1, 1, dropout, infer_dropout, nullptr, first)),
      row(kPositive, "positive", 1, 1, 1, none, infer_positive, nullptr),
      row(kCast, "cast", 1, 1, 1, cast, infer_cast, gradient_cast),
      named(row(kMaxPool, "max_pool", 1, 1, 2, pool, infer_max_pool, gradient_max_pool),
            {"indices"}),
      row(kMaxPoolGrad, "max_pool_grad", 2, 2, 1, pool, infer_max_pool_grad, nullptr),
      row(kAvgPool, "avg_pool", 1, 1, 1, pool, infer_avg_pool, gradient_avg_pool),
      row(kAvgPoolGrad, "avg_pool_grad", 1, 1, 1, pool, infer_avg_pool_grad, nullptr),
      row(kGlobalAvgPool, "global_avg_pool", 1, 1, 1, none, infer_global_avg_pool,
          gradient_global_avg_pool),
      row(kGlobalAvgPoolGrad, "global_avg_pool_grad", 1, 1, 1, pool, infer_global_avg_pool_grad,
          nullptr),
      row(kUpsample, "upsample", 1, 1, 1, upsample, infer_upsample, gradient_upsample),
      row(kUpsampleGrad, "upsample_grad", 1, 1, 1, upsample, infer_upsample_grad, nullptr),
      row(kReshape, "reshape", 1, 1, 1, shape, infer_reshape, gradient_reshape),
      row(kConcat, "concat", 1, -1, 1, axis, infer_concat, gradient_concat),
      row(kSlice, "slice", 1, 1, 1, axis, infer_slice, gradient_slice),
      row(kSliceGrad, "slice_grad", 1, 1, 1, axis, infer_slice_grad, nullptr),
      row(kBroadcast, "broadcast", 1, 1, 1, shape, infer_broadcast, gradient_broadcast),
      row(kReduceSum, "reduce_sum", 1, 1, 1, reduce, infer_reduce, gradient_reduce_sum),
      row(kReduceMean, "reduce_mean", 1, 1, 1, reduce, infer_reduce, gradient_reduce_mean),
      row(kFill, "fill", 0, 0, 1, shape, infer_fill, nullptr),
      row(kEmbedding, "embedding", 2, 2, 1, none, infer_embedding, gradient_embedding),
      row(kEmbeddingGrad, "embedding_grad", 2, 2, 1, embedding, infer_embedding_grad, nullptr, {},
          {0}),
      differentiable(3, named(row(kLstm, "lstm", 6, 6, 4, none, infer_lstm, gradient_lstm),
                              {"h_n", "c_n", "saved"})),
      named(row(kLstmGrad, "lstm_grad", 13, 13, 6, none, infer_lstm_grad, nullptr, {}, {3, 4, 5}),
            {"h0", "c0", "w_ih", "w_hh", "bias"}),
      differentiable(
          2, named(row(kGru, "gru", 5, 5, 3, none, infer_gru, gradient_gru), {"h_n", "saved"})),
      named(row(kGruGrad, "gru_grad", 10, 10, 5, none, infer_gru_grad, nullptr, {}, {2, 3, 4}),
            {"h0", "w_ih", "w_hh", "bias"}),
      row(kSoftmaxCrossEntropy, "softmax_cross_entropy", 2, 2, 1, loss, infer_softmax_cross_entropy,
          gradient_softmax_cross_entropy),
      row(kSoftmaxCrossEntropyGrad, "softmax_cross_entropy_grad", 3, 3, 1, loss,
          infer_softmax_cross_entropy_grad, nullptr, first),
      row(kMeanSquaredError, "mean_squared_error", 2, 2, 1, loss, infer_mean_squared_error,
          gradient_mean_squared_error),
      row(kMeanSquaredErrorGrad, "mean_squared_error_grad", 3, 3, 1, loss,
          infer_mean_squared_error_grad, nullptr, first),
      row(kCorrectCount, "correct_count", 2, 2, 1, loss, infer_correct_count, nullptr),
      row(kGlobalNorm, "global_norm", 1, -1, 1, none, infer_global_norm, nullptr),
      once(named(row(kSgd, "sgd", 2, 4, -1, sgd, infer_sgd, nullptr, {{0, 0, true}, {2, 1, true}}),
                 {"momentum"})),
      once(named(row(kAdam, "adam", 4, 5, 3, adam, infer_adam, nullptr,
                     {{0, 0, true}, {2, 1, true}, {3, 2, true}}),
                 {"m", "v"})),
      once(row(kAssign, "assign", 2, 3, 1, none, infer_assign, nullptr, {{0, 0, true}})),
      once(row(kAllReduce, "all_reduce", 1, 1, 1, none, infer_all_reduce, nullptr, {{0, 0, true}})),
      once(row(kAwait, "await", 1, 1, 1, none, infer_await, nullptr, {{0, 0, true}})),
      row(kReorder, "reorder", 1, 1, 1, reorder, infer_reorder, nullptr),
  };
}

const std::vector<OpInfo>& table() {
  static const std::vector<OpInfo> rows = [] {
    std::vector<OpInfo> made = make_table();
    REPRISE_CHECK(made.size() == kOpKindCount, "{} rows for {} ops", made.size(), kOpKindCount);
    for (std::size_t i = 0; i < made.size(); ++i) {
      REPRISE_CHECK(static_cast<std::size_t>(made[i].kind) == i, "row '{}' is out of order",
                    made[i].name);
    }
    add_bf16_forms(made);
    return made;
  }();
  return rows;
}

}  // namespace

const OpInfo& op_info(OpKind kind) {
  return table()[static_cast<std::size_t>(kind)];
}

bool may_be_bf16(const OpInfo& info, std::size_t input) {
  return std::any_of(info.bf16_inputs.begin(), info.bf16_inputs.end(),
                     [&](int i) { return i < 0 || static_cast<std::size_t>(i) == input; });
}

const Attributes& default_attributes(OpKind kind) {
  static const auto made = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Attributes, sizeof...(I)>{std::variant_alternative_t<I, Attributes>{}...};
  }
  (std::make_index_sequence<std::variant_size_v<Attributes>>());
  return made[op_info(kind).attributes];
}

std::optional<OpKind> find_op(std::string_view name) {
  static const std::unordered_map<std::string_view, OpKind> index = [] {
    std::unordered_map<std::string_view, OpKind> made;
    for (const OpInfo& info : table()) made.emplace(info.name, info.kind);
    return made;
  }();
  const auto found = index.find(name);
  if (found == index.end()) return std::nullopt;
  return found->second;
}

std::vector<InplacePair> inplace_pairs(const Node& node) {
  const OpInfo& info = op_info(node.op);
  std::vector<InplacePair> pairs;
  const auto inputs = static_cast<std::int32_t>(node.inputs.size());
  const auto outputs = static_cast<std::int32_t>(node.outputs.size());
  for (const InplacePair& pair : info.inplace) {
    if (pair.input < inputs && pair.output < outputs) pairs.push_back(pair);
  }
  if (node.accumulate) {
    const auto sums = static_cast<std::int32_t>(info.accumulated.size());
    for (std::int32_t i = 0; i < sums; ++i) {
      pairs.push_back({inputs - sums + i, info.accumulated[static_cast<std::size_t>(i)], true});
    }
  }
  return pairs;
}

}  // namespace reprise::graph
