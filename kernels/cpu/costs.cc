#include "kernels/cpu/costs.h"

#include <cmath>

namespace reprise::kernels::cpu {
namespace {

using graph::OpKind;

// Time of a call, then of each operation and each byte. Rates were fitted to every distinct node of
// resnet20 (batch 64, 28x28), resnet50 (batch 4) and an LSTM (256 steps, 256 wide, batch 16), timed
// in their training steps on two cores of a Zen server with AVX-512 and oneDNN 2.6. Bytes move much
// faster than memory allows because most of what a node reads has just been written and lies in a
// cache; batch norm reads its input twice, which its bytes do not say.
struct Rates {
  double start_ns;
  double flops_per_ns;
  double bytes_per_ns;
};

constexpr double kUncounted = 1e300;  // operations that hide behind the bytes

constexpr Rates kConvolution = {5000, 480, 100};
constexpr Rates kWeightGradient = {5000, 430, 60};
constexpr Rates kMatmul = {8000, 500, 30};
constexpr Rates kRecurrent = {10000, 195, 100};  // many small products, one a time step
constexpr Rates kRecurrentGradient = {10000, 320, 100};
constexpr Rates kNormalization = {8000, kUncounted, 60};
constexpr Rates kPointwise = {3000, kUncounted, 150};
constexpr Rates kCurved = {3000, 100, 150};  // exponentials, error functions, random bits
constexpr Rates kPooling = {5000, kUncounted, 40};
constexpr Rates kCopying = {3000, kUncounted, 50};
constexpr Rates kLoss = {5000, 50, 100};
constexpr Rates kSumming = {5000, kUncounted, 25};
constexpr Rates kUpdating = {1000, kUncounted, 100};

Rates rates_of(OpKind op) {
  switch (op) {
    case OpKind::kConv2d:
    case OpKind::kConv2dGradInput:
      return kConvolution;
    case OpKind::kConv2dGradWeight:
      return kWeightGradient;
    case OpKind::kMatmul:
      return kMatmul;
    case OpKind::kLstm:
    case OpKind::kGru:
      return kRecurrent;
    case OpKind::kLstmGrad:
    case OpKind::kGruGrad:
      return kRecurrentGradient;
    case OpKind::kBatchNorm:
    case OpKind::kBatchNormGrad:
    case OpKind::kBatchNormInference:
    case OpKind::kBatchNormMoments:
    case OpKind::kBatchNormApply:
    case OpKind::kBatchNormGradSums:
    case OpKind::kBatchNormGradInput:
    case OpKind::kLayerNorm:
    case OpKind::kLayerNormGrad:
      return kNormalization;
    case OpKind::kSigmoid:
    case OpKind::kTanh:
    case OpKind::kGelu:
    case OpKind::kGeluGrad:
    case OpKind::kDropout:
    case OpKind::kDropoutGrad:
      return kCurved;
    case OpKind::kMaxPool:
    case OpKind::kMaxPoolGrad:
    case OpKind::kAvgPool:
    case OpKind::kAvgPoolGrad:
    case OpKind::kGlobalAvgPool:
    case OpKind::kGlobalAvgPoolGrad:
      return kPooling;
    case OpKind::kUpsample:
    case OpKind::kUpsampleGrad:
    case OpKind::kConcat:
    case OpKind::kSlice:
    case OpKind::kSliceGrad:
    case OpKind::kBroadcast:
    case OpKind::kFill:
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingGrad:
    case OpKind::kReorder:
      return kCopying;
    case OpKind::kSoftmaxCrossEntropy:
    case OpKind::kSoftmaxCrossEntropyGrad:
    case OpKind::kMeanSquaredError:
    case OpKind::kMeanSquaredErrorGrad:
    case OpKind::kCorrectCount:
      return kLoss;
    case OpKind::kBiasGrad:
    case OpKind::kReduceSum:
    case OpKind::kReduceMean:
    case OpKind::kGlobalNorm:
      return kSumming;
    case OpKind::kSgd:
    case OpKind::kAdam:
    case OpKind::kAssign:
    case OpKind::kBatchNormUpdate:
      return kUpdating;
    case OpKind::kRelu:
    case OpKind::kReluGrad:
    case OpKind::kBatchNormCombine:
    case OpKind::kSigmoidGrad:
    case OpKind::kTanhGrad:
    case OpKind::kAdd:
    case OpKind::kMul:
    case OpKind::kScale:
    case OpKind::kPositive:
    case OpKind::kCast:
    case OpKind::kReshape:
    case OpKind::kAllReduce:
    case OpKind::kAwait:
      return kPointwise;
  }
  return kPointwise;
}

}  // namespace

std::int64_t analytic_cost_ns(OpKind op, double flops, double bytes) {
  if (op == OpKind::kReshape) return 0;  // hands its bytes on
  const Rates rates = rates_of(op);
  // What others do meanwhile is no cost of the step's.
  if (op == OpKind::kAllReduce || op == OpKind::kAwait)
    return static_cast<std::int64_t>(std::ceil(rates.start_ns));
  return static_cast<std::int64_t>(
      std::ceil(rates.start_ns + flops / rates.flops_per_ns + bytes / rates.bytes_per_ns));
}

}  // namespace reprise::kernels::cpu
