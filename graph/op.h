#pragma once

// The ops. One enumerator and one row (graph/op_table.cc) each; every fact about an op sits in its
// row.
//
// Letters: N batch, C channels, H W image, O output channels, K classes, T time steps, B batch of
// sequences, I input size, D model size, V vocabulary, R hidden size of a recurrent layer, G gates
// (4 lstm, 3 gru). Labels and ids are i32. Floats are f32; where a row has bf16_inputs, those may
// all be bf16 together, and outputs then are what bf16_outputs says. "=>" names outputs. "in place:
// a>y" means that output y may take the buffer of input a when a is not read later; "must" that it
// always does. "acc" is the optional running sum that an accumulating node adds into (appended
// inputs, forced in place). Batch norm over D ranks has "parts", an i32[D+1]: which of the ranks
// this is, then the items of each; what a rank has of rows of x behind its items is padding.
//
// Backward ops name all that they read, so that a plan knows exactly what a gradient needs.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/attributes.h"
#include "graph/types.h"

namespace reprise::graph {

struct Graph;
struct Node;

enum class OpKind : std::uint8_t {
  // -- dense and convolution
  kConv2d,  // x[N,C,H,W] w[O,C/groups,KH,KW] bias[O]? => y[N,O,H',W']           Conv2dAttributes
  kConv2dGradInput,   // dy w => dx                                    (attributes with input_size)
  kConv2dGradWeight,  // x dy acc? => dw                               (attributes with kernel)
  kMatmul,    // a[..,M,K] b[..,K,P] bias[P]? acc? => y[..,M,P]; transposed storage by attribute;
              // a and b have the same rank >= 2 and equal leading axes; y of bf16 operands is bf16,
              // or f32 by attribute (always with acc)                           MatmulAttributes
  kBiasGrad,  // dy acc? => db[size of axis]: sum over all other axes AxisAttributes{axis}
  // -- normalisation
  kBatchNorm,  // x[N,C,...] gamma[C] beta[C] => y mean[C] var[C] (population variance); in place:
               // x>y
  kBatchNormGrad,  // x dy mean var gamma => dx dgamma[C] dbeta[C]; in place: dy>dx NormAttributes
  kBatchNormInference,  // x gamma beta running_mean running_var => y; in place: x>y NormAttributes
  kBatchNormUpdate,     // running_mean running_var (mean var)+ norm? => running_mean' running_var';
                        // must; once. One pair for each batch, taken up in their order
                        // RunningUpdateAttributes
  // Over D ranks, with an all_reduce of the moments in between and one of the sums:
  kBatchNormMoments,    // x parts => moments[D,2,C]: this rank's mean and variance in its own row,
                        // zeros in the others
  kBatchNormCombine,    // moments parts => mean[C] var[C] sample_var[C] of all items, the variance
                        // as the population's and as a sample's            CombineAttributes
  kBatchNormApply,      // x gamma beta mean var parts => y, zeros in padding; in place: x>y
                        // NormAttributes
  kBatchNormGradSums,   // x dy mean var parts => sums[2,C] over the items: of dy, and of dy times
                        // the normalised x                                 NormAttributes
  kBatchNormGradInput,  // x dy mean var gamma sums parts => dx dgamma[C] dbeta[C] of all ranks'
                        // loss; zeros in padding; in place: dy>dx          NormAttributes
  kLayerNorm,  // x[..,D] gamma[D] beta[D] => y mean[..] var[..]; in place: x>y      NormAttributes
  kLayerNormGrad,  // x dy mean var gamma => dx dgamma[D] dbeta[D]; in place: dy>dx NormAttributes
  // -- pointwise
  kRelu,         // x => y; in place: x>y
  kReluGrad,     // y dy => dx; in place: dy>dx, y>dx
  kSigmoid,      // x => y; in place: x>y
  kSigmoidGrad,  // y dy => dx; in place: dy>dx, y>dx
  kTanh,         // x => y; in place: x>y
  kTanhGrad,     // y dy => dx; in place: dy>dx, y>dx
  kGelu,         // x => y (exact, with erf); in place: x>y
  kGeluGrad,     // x dy => dx; in place: dy>dx, x>dx
  kAdd,          // a b => y, equal shapes, f32 or i32 (counts); in place: a>y, b>y
  kMul,          // a b => y, equal shapes; in place: a>y, b>y
  kScale,    // x => factor * x; in place: x>y                                     ScaleAttributes
  kDropout,  // x => y: kept values / (1 - p), others 0; in place: x>y. The mask is a function of
             // (seed, step, stream, element index) only (graph/random.h)        DropoutAttributes
  kDropoutGrad,  // dy => dx with the same mask; in place: dy>dx DropoutAttributes
  kPositive,     // x => i32: 1 where x > 0, else 0; no gradient
  kCast,  // x => the same numbers in another dtype: f32 to bf16 (rounded to the nearest, ties
          // to even) or bf16 to f32                                       CastAttributes
  // -- pooling and resampling
  kMaxPool,  // x[N,C,H,W] => y indices (u8: position in the window; the backend may store its own
             // form)                                                              Pool2dAttributes
  kMaxPoolGrad,  // dy indices => dx                                 (attributes with input_size)
  kAvgPool,  // x[N,C,H,W] => y                                                    Pool2dAttributes
  kAvgPoolGrad,    // dy => dx                                         (attributes with input_size)
  kGlobalAvgPool,  // x[N,C,H,W] => y[N,C]
  kGlobalAvgPoolGrad,  // dy[N,C] => dx[N,C,H,W] (Pool2dAttributes.input_size)
  kUpsample,  // x[N,C,H,W] => y[N,C,fH,fW], nearest                              UpsampleAttributes
  kUpsampleGrad,  // dy => dx UpsampleAttributes
  // -- shape
  kReshape,  // x => y: the same bytes under another shape; copies nothing          ShapeAttributes
  kConcat,   // x1 x2 ... => y along axis                                            AxisAttributes
  kSlice,    // x => y = x[begin, end) along axis; f32 or i32 (tokens)               AxisAttributes
  kSliceGrad,   // dy => dx: dy at [begin, end) of an axis of size `full`, zeros elsewhere
  kBroadcast,   // x => y of attributes.shape; numpy rules (axes aligned at the right)
                // ShapeAttributes
  kReduceSum,   // x => y ReduceAttributes
  kReduceMean,  // x => y ReduceAttributes
  kFill,  // => y of attributes.shape filled with attributes.value                ShapeAttributes
  // -- sequences
  kEmbedding,      // table[V,D] ids[..] => y[..,D]; an id outside [0,V) is an error at run time
  kEmbeddingGrad,  // ids dy acc? => dtable[V,D] EmbeddingAttributes
  kLstm,           // x[T,B,I] h0[B,R] c0[B,R] w_ih[4R,I] w_hh[4R,R] bias[4R]
  // => y[T,B,R] h_n[B,R] c_n[B,R] saved. Gates i f g o, as PyTorch; bias is the sum of
  // its two. saved[T,B,5R] (gates after activation, then c) or the backend's own form
  kLstmGrad,  // x h0 c0 w_ih w_hh bias y h_n c_n saved dy dh_n dc_n acc_ih? acc_hh? acc_b?
              // => dx dh0 dc0 dw_ih dw_hh dbias
  kGru,       // x[T,B,I] h0[B,R] w_ih[3R,I] w_hh[3R,R] bias[4R] => y[T,B,R] h_n[B,R] saved.
              // Gates u r n (oneDNN's lbr_gru; u is PyTorch's z, which PyTorch stores second);
              // bias u, r, n of x, n of h:  n = tanh(W_n x + b_n + r * (U_n h + b_nh)),
              // h' = (1-u) * n + u * h. saved[T,B,4R] = u r n (U_n h + b_nh), or the backend's form
  kGruGrad,   // x h0 w_ih w_hh bias y h_n saved dy dh_n acc_ih? acc_hh? acc_b?
              // => dx dh0 dw_ih dw_hh dbias
  // -- losses: scalar outputs, shape []
  kSoftmaxCrossEntropy,      // logits[M,K] labels[M] => loss; mean over counted labels (0 if none)
                             // LossAttributes
  kSoftmaxCrossEntropyGrad,  // logits labels dloss[] => dlogits; in place: logits>dlogits
                             // LossAttributes
  kMeanSquaredError,      // prediction target => loss; mean or sum over all elements LossAttributes
  kMeanSquaredErrorGrad,  // prediction target dloss[] => dprediction; in place:
                          // prediction>dprediction
  kCorrectCount,  // logits[M,K] labels[M] => i32 []: labels equal to the first maximum of their
                  // row, ignored ones not counted; no gradient               LossAttributes
  // -- updates of persistent values: once, in place, never recomputed
  // An update that takes a norm, its last input, takes it as its attributes say (takes_norm).
  kGlobalNorm,  // x1 x2 ... => norm []: the root of the sum of all squares
  kSgd,         // param grad momentum? norm? => param' momentum'?; must              SgdAttributes
  kAdam,        // param grad m v norm? => param' m' v'; must                        AdamAttributes
  kAssign,      // variable x norm? => variable' = x, or variable where norm is not finite; must
  // -- between ranks: once, in place, never recomputed; the identity in a world of one
  kAllReduce,  // x => y: begins to add up x over the ranks; only its await may read y; must
  kAwait,      // x => y: y is the sum over the ranks, in x's bytes; x is an all_reduce's; must
  // -- made by backends
  kReorder,  // x => the same value in another memory layout                      ReorderAttributes
};

inline constexpr std::size_t kOpKindCount = static_cast<std::size_t>(OpKind::kReorder) + 1;

// Output `output` may (or must) take the buffer of input `input`.
struct InplacePair {
  std::int32_t input = 0;
  std::int32_t output = 0;
  bool forced = false;
  friend bool operator==(const InplacePair&, const InplacePair&) = default;
};

struct InferredValue {
  Shape shape;
  DType dtype = DType::kF32;
};

class GradientContext;  // graph/gradient.h

struct OpInfo {
  OpKind kind{};
  std::string_view name;                            // "conv2d_grad_input"; unique
  int min_inputs = 0;                               // without accumulated sums
  int max_inputs = 0;                               // -1: any number
  int outputs = 1;                                  // -1: as many as `infer` says (sgd)
  std::vector<std::string_view> further_outputs{};  // names of the outputs after the first
  std::vector<InplacePair> inplace{};  // legal pairs, without those of the accumulate form
  std::vector<int> accumulated{};  // outputs that have an accumulate form, in the order of the sums
  std::size_t attributes = 0;      // index into the Attributes variant that its nodes carry
  bool recomputable = true;        // running it again gives the same bits and touches nothing else
  // How many of the first outputs hand their gradient on; -1: all. The statistics of a norm and the
  // saved values of a recurrent layer serve the backward op alone.
  int differentiable = -1;
  // How many of the first inputs a gradient flows to; -1: all. That of statistics over ranks is
  // part of what their reader hands to x.
  int differentiable_inputs = -1;
  // The inputs that may be bf16 instead of f32, all of them together; {-1}: every one; empty: the
  // op has no bf16 form. Kernels compute in f32 and round results once, when they are stored.
  std::vector<int> bf16_inputs{};
  std::vector<int> bf16_outputs{0};  // those that then are bf16; the others stay f32
  bool random = false;               // draws from the counter-based generator
  // Output shapes and dtypes from the node's inputs and attributes; throws Error(kInput) naming the
  // node, the op and both numbers.
  std::vector<InferredValue> (*infer)(const Graph&, const Node&) = nullptr;
  // Adds the backward nodes of one node (graph/gradient.h). Null: no gradient flows through the op.
  void (*gradient)(GradientContext&) = nullptr;
};

[[nodiscard]] const OpInfo& op_info(OpKind kind);
[[nodiscard]] bool may_be_bf16(const OpInfo& info, std::size_t input);
// The attributes that nodes of this op carry, each field at its default.
[[nodiscard]] const Attributes& default_attributes(OpKind kind);
[[nodiscard]] std::optional<OpKind> find_op(std::string_view name);

// In-place pairs of one node, with the forced ones of its accumulate form: sum i is input
// (inputs.size() - accumulated.size() + i) and becomes output accumulated[i].
[[nodiscard]] std::vector<InplacePair> inplace_pairs(const Node& node);

}  // namespace reprise::graph
