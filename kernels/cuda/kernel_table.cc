#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

// What the kernels below take as bf16. All others read floats, whatever the op's row says.
bool takes_bf16(graph::OpKind op) {
  using enum graph::OpKind;
  switch (op) {
    case kConv2d:
    case kConv2dGradInput:
    case kConv2dGradWeight:
    case kMatmul:
    case kBiasGrad:
    case kBatchNorm:
    case kBatchNormGrad:
    case kBatchNormInference:
    case kBatchNormMoments:
    case kBatchNormApply:
    case kBatchNormGradSums:
    case kBatchNormGradInput:
    case kLayerNorm:
    case kLayerNormGrad:
    case kRelu:
    case kReluGrad:
    case kSigmoid:
    case kSigmoidGrad:
    case kTanh:
    case kTanhGrad:
    case kGelu:
    case kGeluGrad:
    case kAdd:
    case kMul:
    case kScale:
    case kPositive:
    case kCast:
    case kDropout:
    case kDropoutGrad:
    case kMaxPool:
    case kMaxPoolGrad:
    case kAvgPool:
    case kAvgPoolGrad:
    case kGlobalAvgPool:
    case kGlobalAvgPoolGrad:
    case kUpsample:
    case kUpsampleGrad:
    case kReshape:
    case kConcat:
    case kSlice:
    case kSliceGrad:
    case kLstm:
    case kLstmGrad:
    case kGru:
    case kGruGrad:
      return true;
    default:
      return false;
  }
}

void require_floats(const Booking& booking) {
  if (takes_bf16(booking.node().op)) return;
  for (std::size_t i = 0; i < booking.inputs(); ++i) {
    if (booking.input(i).dtype == graph::DType::kBF16) {
      throw booking.unsupported("'" + booking.input(i).name + "' is bf16, it computes in f32");
    }
  }
}

}  // namespace

std::unique_ptr<Kernel> plan_kernel(Booking& booking) {
  using graph::OpKind;
  require_floats(booking);
  switch (booking.node().op) {
    case OpKind::kConv2d:
      return plan_conv2d(booking);
    case OpKind::kConv2dGradInput:
      return plan_conv2d_grad_input(booking);
    case OpKind::kConv2dGradWeight:
      return plan_conv2d_grad_weight(booking);
    case OpKind::kMatmul:
      return plan_matmul(booking);
    case OpKind::kBiasGrad:
      return plan_bias_grad(booking);
    case OpKind::kBatchNorm:
      return plan_batch_norm(booking);
    case OpKind::kBatchNormGrad:
      return plan_batch_norm_grad(booking);
    case OpKind::kBatchNormInference:
      return plan_batch_norm_inference(booking);
    case OpKind::kBatchNormUpdate:
      return plan_batch_norm_update(booking);
    case OpKind::kBatchNormMoments:
      return plan_batch_norm_moments(booking);
    case OpKind::kBatchNormCombine:
      return plan_batch_norm_combine(booking);
    case OpKind::kBatchNormApply:
      return plan_batch_norm_apply(booking);
    case OpKind::kBatchNormGradSums:
      return plan_batch_norm_grad_sums(booking);
    case OpKind::kBatchNormGradInput:
      return plan_batch_norm_grad_input(booking);
    case OpKind::kLayerNorm:
      return plan_layer_norm(booking);
    case OpKind::kLayerNormGrad:
      return plan_layer_norm_grad(booking);
    case OpKind::kRelu:
    case OpKind::kReluGrad:
    case OpKind::kSigmoid:
    case OpKind::kSigmoidGrad:
    case OpKind::kTanh:
    case OpKind::kTanhGrad:
    case OpKind::kGelu:
    case OpKind::kGeluGrad:
    case OpKind::kAdd:
    case OpKind::kMul:
    case OpKind::kScale:
    case OpKind::kPositive:
      return plan_pointwise(booking);
    case OpKind::kCast:
      return plan_cast(booking);
    case OpKind::kDropout:
    case OpKind::kDropoutGrad:
      return plan_dropout(booking);
    case OpKind::kMaxPool:
    case OpKind::kAvgPool:
      return plan_pool(booking);
    case OpKind::kMaxPoolGrad:
    case OpKind::kAvgPoolGrad:
      return plan_pool_grad(booking);
    case OpKind::kGlobalAvgPool:
      return plan_global_avg_pool(booking);
    case OpKind::kGlobalAvgPoolGrad:
      return plan_global_avg_pool_grad(booking);
    case OpKind::kUpsample:
      return plan_upsample(booking);
    case OpKind::kUpsampleGrad:
      return plan_upsample_grad(booking);
    case OpKind::kReshape:
      return plan_reshape(booking);
    case OpKind::kConcat:
      return plan_concat(booking);
    case OpKind::kSlice:
      return plan_slice(booking);
    case OpKind::kSliceGrad:
      return plan_slice_grad(booking);
    case OpKind::kBroadcast:
      return plan_broadcast(booking);
    case OpKind::kReduceSum:
    case OpKind::kReduceMean:
      return plan_reduce(booking);
    case OpKind::kFill:
      return plan_fill(booking);
    case OpKind::kEmbedding:
      return plan_embedding(booking);
    case OpKind::kEmbeddingGrad:
      return plan_embedding_grad(booking);
    case OpKind::kLstm:
      return plan_lstm(booking);
    case OpKind::kLstmGrad:
      return plan_lstm_grad(booking);
    case OpKind::kGru:
      return plan_gru(booking);
    case OpKind::kGruGrad:
      return plan_gru_grad(booking);
    case OpKind::kSoftmaxCrossEntropy:
      return plan_softmax_cross_entropy(booking);
    case OpKind::kSoftmaxCrossEntropyGrad:
      return plan_softmax_cross_entropy_grad(booking);
    case OpKind::kMeanSquaredError:
      return plan_mean_squared_error(booking);
    case OpKind::kMeanSquaredErrorGrad:
      return plan_mean_squared_error_grad(booking);
    case OpKind::kCorrectCount:
      return plan_correct_count(booking);
    case OpKind::kGlobalNorm:
      return plan_global_norm(booking);
    case OpKind::kSgd:
      return plan_sgd(booking);
    case OpKind::kAdam:
      return plan_adam(booking);
    case OpKind::kAssign:
      return plan_assign(booking);
    case OpKind::kAllReduce:
    case OpKind::kAwait:
      return plan_all_reduce(booking);
    case OpKind::kReorder:
      throw booking.unsupported("every value is plain here");
  }
  throw booking.unsupported("unknown op");
}

}  // namespace reprise::kernels::cuda
