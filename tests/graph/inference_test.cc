// Shapes by op family, with the arithmetic beside them, and what each op refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "graph/builder.h"
#include "tests/graph/small_graphs.h"

namespace reprise::graph {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Inference : public testing::Test {
 protected:
  ValueId f32(Shape shape) { return b.input(fmt::format("x{}", count++), std::move(shape)); }
  ValueId i32(Shape shape) {
    return b.input(fmt::format("x{}", count++), std::move(shape), DType::kI32);
  }
  Shape shape(ValueId value) { return b.shape(value); }
  DType dtype(ValueId value) { return b.graph().values[value].dtype; }
  std::vector<ValueId> append(OpKind op, std::vector<ValueId> inputs,
                              const Attributes& attributes = NoAttributes{},
                              bool accumulate = false) {
    return b.append(op, std::move(inputs), attributes, {}, Phase::kBackward, accumulate);
  }
  std::string refusal(const std::function<void()>& action) { return input_error_of(action); }

  Builder b{"test"};
  int count = 0;
};

TEST_F(Inference, ConvolutionRoundsItsOutputSizeDown) {
  const ValueId x = f32({2, 3, 7, 8});
  const ValueId w = f32({4, 3, 3, 3});
  // no padding: (7 - 3)/1 + 1 = 5, (8 - 3)/1 + 1 = 6
  EXPECT_EQ(shape(b.conv2d(x, w)), (Shape{2, 4, 5, 6}));
  // stride 2, padding 1: floor((7 + 2 - 3)/2) + 1 = 4, floor((8 + 2 - 3)/2) + 1 = floor(3.5) + 1 =
  // 4
  EXPECT_EQ(shape(b.conv2d(x, w, {.stride = {2, 2}, .padding = {1, 1}})), (Shape{2, 4, 4, 4}));
  // dilation 3 makes the kernel reach over 3*(3-1)+1 = 7: (7 - 7)/1 + 1 = 1, (8 - 7)/1 + 1 = 2
  EXPECT_EQ(shape(b.conv2d(x, w, {.dilation = {3, 3}})), (Shape{2, 4, 1, 2}));
}

TEST_F(Inference, GroupedConvolutionSplitsTheChannels) {
  const ValueId x = f32({1, 4, 5, 5});
  EXPECT_EQ(shape(b.conv2d(x, f32({6, 2, 1, 1}), {.groups = 2})), (Shape{1, 6, 5, 5}));
  EXPECT_THAT(refusal([&] {
                b.conv2d(x, f32({6, 4, 1, 1}), {.groups = 2}, "c");
              }),
              AllOf(HasSubstr("conv2d 'c'"), HasSubstr("expects 4 input channels per group"),
                    HasSubstr("x has 2")));
  EXPECT_THAT(refusal([&] {
                b.conv2d(x, f32({6, 2, 1, 1}), {.groups = 3});
              }),
              HasSubstr("4 input channels are no multiple of 3 groups"));
  EXPECT_THAT(refusal([&] {
                b.conv2d(x, f32({5, 2, 1, 1}), {.groups = 2});
              }),
              HasSubstr("5 output channels are no multiple of 2 groups"));
}

TEST_F(Inference, ConvolutionRefusesAKernelBeyondTheImage) {
  // the kernel reaches over 2*(3-1)+1 = 5 of 2 + 2*1 = 4 pixels
  EXPECT_THAT(refusal([&] {
                b.conv2d(f32({1, 1, 2, 9}), f32({1, 1, 3, 3}),
                         {.padding = {1, 1}, .dilation = {2, 2}}, "c");
              }),
              AllOf(HasSubstr("conv2d 'c'"), HasSubstr("over 5 of 4"), HasSubstr("axis 2")));
}

TEST_F(Inference, ConvolutionRefusesOddAttributesAndOperands) {
  const ValueId x = f32({1, 1, 5, 5});
  const ValueId w = f32({1, 1, 3, 3});
  EXPECT_THAT(refusal([&] {
                b.conv2d(x, w, {.stride = {0, 1}});
              }),
              HasSubstr("stride must be at least 1, got 0"));
  EXPECT_THAT(refusal([&] {
                b.conv2d(x, w, {.padding = {-1, 0}});
              }),
              HasSubstr("padding must be at least 0, got -1"));
  EXPECT_THAT(refusal([&] { b.conv2d(x, w, {.stride = {1}}); }),
              HasSubstr("stride needs two numbers (height, width), got 1"));
  EXPECT_THAT(refusal([&] { b.conv2d(f32({1, 5, 5}), w); }), HasSubstr("x must have 4 axes"));
  EXPECT_THAT(refusal([&] {
                b.conv2d(i32({1, 1, 5, 5}), w);
              }),
              HasSubstr("x must be f32, got i32"));
  EXPECT_THAT(refusal([&] { b.conv2d(x, w, f32({2})); }),
              HasSubstr("bias must have shape [1], got [2]"));
}

TEST_F(Inference, ConvolutionAttributesNearTheLimitDoNotOverflow) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const ValueId x = f32({1, 1, 5, 5});
  const ValueId w = f32({1, 1, 3, 3});
  EXPECT_THAT(refusal([&] { b.conv2d(x, w, {.dilation = {most, 1}}); }), HasSubstr("beyond 2^63"));
  EXPECT_THAT(refusal([&] { b.conv2d(x, w, {.padding = {most, 1}}); }), HasSubstr("beyond 2^63"));
  EXPECT_THAT(refusal([&] {
                b.conv2d(x, w, {.padding = {most / 2 - 2, 1}});
              }),
              HasSubstr("beyond 2^63"));
  EXPECT_THAT(refusal([&] { b.upsample(x, most); }), HasSubstr("beyond 2^63"));
  EXPECT_THAT(refusal([&] { b.broadcast(f32({1}), {most, most}); }), HasSubstr("beyond 2^63"));
}

TEST_F(Inference, ConvolutionGradientsRestoreTheShapesOfTheirOperands) {
  const ValueId x = f32({2, 4, 8, 8});
  const ValueId w = f32({6, 2, 3, 3});
  // floor((8 - 3)/2) + 1 = 3; an image of 7 would give 3 as well, so the size is an attribute
  Conv2dAttributes a{.stride = {2, 2}, .groups = 2};
  const ValueId y = b.conv2d(x, w, a);
  ASSERT_EQ(shape(y), (Shape{2, 6, 3, 3}));
  a.input_size = {8, 8};
  EXPECT_EQ(shape(append(OpKind::kConv2dGradInput, {y, w}, a)[0]), (Shape{2, 4, 8, 8}));
  a.kernel = {3, 3};
  const ValueId dw = append(OpKind::kConv2dGradWeight, {x, y}, a)[0];
  EXPECT_EQ(shape(dw), (Shape{6, 2, 3, 3}));
  EXPECT_EQ(shape(append(OpKind::kConv2dGradWeight, {x, y, dw}, a, true)[0]), (Shape{6, 2, 3, 3}));
  a.input_size = {9, 8};  // floor((9 - 3)/2) + 1 = 4, not the 3 of dy
  EXPECT_THAT(refusal([&] {
                append(OpKind::kConv2dGradInput, {y, w}, a);
              }),
              AllOf(HasSubstr("dy must have shape [2,6,4,3]"), HasSubstr("got [2,6,3,3]")));
}

TEST_F(Inference, MatmulMultipliesTheLastTwoAxes) {
  EXPECT_EQ(shape(b.matmul(f32({2, 3}), f32({3, 4}))), (Shape{2, 4}));
  EXPECT_EQ(shape(b.matmul(f32({5, 3, 2}), f32({5, 3, 4}), {.transpose_a = true})),
            (Shape{5, 2, 4}));
  EXPECT_EQ(shape(b.matmul(f32({2, 3}), f32({4, 3}), {.transpose_b = true})), (Shape{2, 4}));
  EXPECT_THAT(refusal([&] {
                b.matmul(f32({2, 3}), f32({4, 5}), {}, "m");
              }),
              AllOf(HasSubstr("matmul 'm'"), HasSubstr("has 3 columns"), HasSubstr("has 4 rows")));
  EXPECT_THAT(refusal([&] {
                b.matmul(f32({5, 2, 3}), f32({6, 3, 4}));
              }),
              HasSubstr("leading axis 0 of a is 5, of b 6"));
  EXPECT_THAT(refusal([&] { b.matmul(f32({5, 2, 3}), f32({3, 4})); }), HasSubstr("same rank"));
}

TEST_F(Inference, LinearFlattensTheLeadingAxes) {
  const ValueId w = f32({7, 3});
  const std::size_t before = b.graph().nodes.size();
  EXPECT_EQ(shape(b.linear(f32({2, 3}), w, f32({7}))), (Shape{2, 7}));
  EXPECT_EQ(b.graph().nodes.size(), before + 1);  // two axes: just the product
  EXPECT_EQ(shape(b.linear(f32({4, 5, 3}), w)), (Shape{4, 5, 7}));
  EXPECT_EQ(b.graph().nodes.size(), before + 4);  // reshape, product, reshape
  EXPECT_EQ(shape(b.linear(f32({3}), w)), (Shape{7}));
  EXPECT_THAT(refusal([&] {
                b.linear(f32({2, 4}), w, "fc");
              }),
              AllOf(HasSubstr("'fc'"), HasSubstr("4"), HasSubstr("3")));
}

TEST_F(Inference, BiasGradientSumsOverAllOtherAxes) {
  const ValueId dy = f32({2, 5, 3, 3});
  EXPECT_EQ(shape(append(OpKind::kBiasGrad, {dy}, AxisAttributes{.axis = 1})[0]), (Shape{5}));
  EXPECT_THAT(refusal([&] { append(OpKind::kBiasGrad, {dy}, AxisAttributes{.axis = 4}); }),
              HasSubstr("axis 4 is outside of shape [2,5,3,3]"));
}

TEST_F(Inference, NormalisationsReturnTheirStatistics) {
  const ValueId x = f32({4, 3, 2, 2});
  const auto bn = append(OpKind::kBatchNorm, {x, f32({3}), f32({3})}, NormAttributes{});
  EXPECT_EQ(shape(bn[0]), (Shape{4, 3, 2, 2}));
  EXPECT_EQ(shape(bn[1]), (Shape{3}));
  EXPECT_EQ(shape(bn[2]), (Shape{3}));
  const auto ln = append(OpKind::kLayerNorm, {x, f32({2}), f32({2})}, NormAttributes{});
  EXPECT_EQ(shape(ln[1]), (Shape{4, 3, 2}));  // one mean per row of the last axis
  const auto grad =
      append(OpKind::kBatchNormGrad, {x, bn[0], bn[1], bn[2], f32({3})}, NormAttributes{});
  EXPECT_EQ(shape(grad[0]), (Shape{4, 3, 2, 2}));
  EXPECT_EQ(shape(grad[2]), (Shape{3}));
  EXPECT_THAT(refusal([&] {
                append(OpKind::kLayerNorm, {x, f32({3}), f32({2})}, NormAttributes{});
              }),
              HasSubstr("gamma must have shape [2], got [3]"));
  EXPECT_THAT(refusal([&] {
                append(OpKind::kBatchNorm, {x, f32({3}), f32({3})}, NormAttributes{.epsilon = -1});
              }),
              HasSubstr("epsilon must not be negative, got -1"));
}

TEST_F(Inference, PointwiseOpsKeepTheShape) {
  const ValueId x = f32({2, 3});
  for (ValueId y : {b.relu(x), b.sigmoid(x), b.tanh(x), b.gelu(x), b.scale(x, 2), b.add(x, x),
                    b.mul(x, x), b.dropout(x, 0.5), b.positive(x)}) {
    EXPECT_EQ(shape(y), (Shape{2, 3}));
  }
  EXPECT_EQ(dtype(b.positive(x)), DType::kI32);
  EXPECT_EQ(dtype(b.add(i32({2}), i32({2}))), DType::kI32);
  EXPECT_THAT(refusal([&] {
                b.add(x, f32({3, 2}), "sum");
              }),
              AllOf(HasSubstr("add 'sum'"), HasSubstr("[2,3]"), HasSubstr("[3,2]")));
  EXPECT_THAT(refusal([&] { b.add(x, i32({2, 3})); }), HasSubstr("must be f32, got i32"));
  EXPECT_THAT(refusal([&] { b.mul(i32({2}), i32({2})); }), HasSubstr("must be f32, got i32"));
  EXPECT_THAT(refusal([&] { b.relu(i32({2})); }), HasSubstr("x must be f32, got i32"));
  EXPECT_THAT(refusal([&] { b.dropout(x, 1.0); }),
              HasSubstr("probability must lie in [0, 1), got 1"));
}

TEST_F(Inference, PoolingCountsWindows) {
  const ValueId x = f32({1, 2, 7, 6});
  // kernel 3, stride 2, padding 1: floor((7 + 2 - 3)/2) + 1 = 4, floor((6 + 2 - 3)/2) + 1 = 3
  const Pool2dAttributes a{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  const auto pool = append(OpKind::kMaxPool, {x}, a);
  EXPECT_EQ(shape(pool[0]), (Shape{1, 2, 4, 3}));
  EXPECT_EQ(shape(pool[1]), (Shape{1, 2, 4, 3}));
  EXPECT_EQ(dtype(pool[1]), DType::kU8);
  Pool2dAttributes grad = a;
  grad.input_size = {7, 6};
  EXPECT_EQ(shape(append(OpKind::kMaxPoolGrad, {pool[0], pool[1]}, grad)[0]), (Shape{1, 2, 7, 6}));
  EXPECT_EQ(shape(append(OpKind::kAvgPoolGrad, {b.avg_pool(x, a)}, grad)[0]), (Shape{1, 2, 7, 6}));
  EXPECT_EQ(shape(b.global_avg_pool(x)), (Shape{1, 2}));
  EXPECT_EQ(shape(append(OpKind::kGlobalAvgPoolGrad, {f32({1, 2})}, grad)[0]), (Shape{1, 2, 7, 6}));
  EXPECT_THAT(refusal([&] {
                b.max_pool(x, {.kernel = {2, 2}, .padding = {2, 0}});
              }),
              HasSubstr("padding 2 is more than half of kernel 2"));
  EXPECT_THAT(refusal([&] {
                b.max_pool(x, {.kernel = {8, 2}}, "p");
              }),
              AllOf(HasSubstr("max_pool 'p'"), HasSubstr("kernel 8"), HasSubstr("image 7")));
  EXPECT_THAT(refusal([&] {
                b.max_pool(f32({1, 1, 20, 20}), {.kernel = {17, 16}});
              }),
              HasSubstr("17x16 has more than 256 positions"));  // 272: a position fits a u8
}

TEST_F(Inference, UpsamplingMultipliesAndItsGradientDivides) {
  EXPECT_EQ(shape(b.upsample(f32({1, 2, 3, 4}), 3)), (Shape{1, 2, 9, 12}));
  const UpsampleAttributes a{.factor = 3};
  EXPECT_EQ(shape(append(OpKind::kUpsampleGrad, {f32({1, 2, 9, 12})}, a)[0]), (Shape{1, 2, 3, 4}));
  EXPECT_THAT(refusal([&] {
                append(OpKind::kUpsampleGrad, {f32({1, 2, 9, 10})}, a);
              }),
              HasSubstr("no multiple of factor 3"));
}

TEST_F(Inference, ReshapeFillsOneOpenAxis) {
  const ValueId x = f32({2, 3, 4});
  EXPECT_EQ(shape(b.reshape(x, {6, -1})), (Shape{6, 4}));
  EXPECT_EQ(shape(b.flatten(x)), (Shape{2, 12}));
  EXPECT_EQ(shape(b.reshape(f32({1}), {})), Shape{});
  EXPECT_EQ(dtype(b.reshape(i32({4}), {2, 2})), DType::kI32);
  EXPECT_THAT(refusal([&] {
                b.reshape(x, {5, -1}, "r");
              }),
              AllOf(HasSubstr("reshape 'r'"), HasSubstr("24 elements"), HasSubstr("[5,-1]")));
  EXPECT_THAT(refusal([&] {
                b.reshape(x, {5, 5});
              }),
              AllOf(HasSubstr("24 elements"), HasSubstr("[5,5] has 25")));
  EXPECT_THAT(refusal([&] { b.reshape(x, {-1, -1}); }), HasSubstr("[-1,-1]"));
  EXPECT_THAT(refusal([&] { b.reshape(x, {0, 24}); }), HasSubstr("at least 1"));
}

TEST_F(Inference, ConcatAndSliceWorkAlongOneAxis) {
  EXPECT_EQ(shape(b.concat({f32({2, 3}), f32({2, 1}), f32({2, 4})}, 1)), (Shape{2, 8}));
  EXPECT_THAT(refusal([&] {
                b.concat({f32({2, 3}), f32({3, 3})}, 1);
              }),
              AllOf(HasSubstr("input 1"), HasSubstr("[3,3]"), HasSubstr("[2,3]")));
  const ValueId x = f32({6, 5});
  EXPECT_EQ(shape(b.slice(x, 0, 2, 5)), (Shape{3, 5}));
  EXPECT_EQ(dtype(b.slice(i32({6}), 0, 0, 1)), DType::kI32);
  EXPECT_THAT(refusal([&] { b.slice(x, 1, 2, 6, "s"); }),
              AllOf(HasSubstr("slice 's'"), HasSubstr("[2, 6)"), HasSubstr("[6,5]")));
  EXPECT_THAT(refusal([&] { b.slice(x, 1, 2, 2); }), HasSubstr("[2, 2)"));
  const AxisAttributes back{.axis = 0, .begin = 2, .end = 5, .full = 6};
  EXPECT_EQ(shape(append(OpKind::kSliceGrad, {f32({3, 5})}, back)[0]), (Shape{6, 5}));
  EXPECT_THAT(refusal([&] {
                append(OpKind::kSliceGrad, {f32({4, 5})}, back);
              }),
              AllOf(HasSubstr("[2, 5)"), HasSubstr("[4,5]")));
}

TEST_F(Inference, BroadcastAlignsAxesAtTheRight) {
  EXPECT_EQ(shape(b.broadcast(f32({3, 1}), {2, 3, 4})), (Shape{2, 3, 4}));
  EXPECT_EQ(shape(b.broadcast(f32({}), {2, 3})), (Shape{2, 3}));
  EXPECT_THAT(refusal([&] {
                b.broadcast(f32({2, 3}), {3, 2});
              }),
              AllOf(HasSubstr("[2,3] does not broadcast to [3,2]"), HasSubstr("3 against 2")));
  EXPECT_THAT(refusal([&] { b.broadcast(f32({2, 3}), {3}); }), HasSubstr("more axes"));
}

TEST_F(Inference, ReductionsDropOrKeepTheirAxes) {
  const ValueId x = f32({2, 3, 4});
  EXPECT_EQ(shape(b.reduce_sum(x)), Shape{});
  EXPECT_EQ(shape(b.reduce_mean(x, {0, 2})), (Shape{3}));
  EXPECT_EQ(shape(b.reduce_mean(x, {0, 2}, true)), (Shape{1, 3, 1}));
  EXPECT_THAT(refusal([&] { b.reduce_sum(x, {2, 0}); }), HasSubstr("sorted and unique"));
  EXPECT_THAT(refusal([&] { b.reduce_sum(x, {1, 1}); }), HasSubstr("sorted and unique"));
  EXPECT_THAT(refusal([&] { b.reduce_sum(x, {3}); }), HasSubstr("axis 3 is outside"));
}

TEST_F(Inference, EmbeddingAddsTheWidthOfItsTable) {
  const ValueId ids = i32({5, 2});
  EXPECT_EQ(shape(b.embedding(f32({10, 3}), ids)), (Shape{5, 2, 3}));
  const ValueId dy = f32({5, 2, 3});
  EXPECT_EQ(shape(append(OpKind::kEmbeddingGrad, {ids, dy}, EmbeddingAttributes{.rows = 10})[0]),
            (Shape{10, 3}));
  EXPECT_THAT(refusal([&] {
                b.embedding(f32({10, 3}), f32({5}));
              }),
              HasSubstr("ids must be i32, got f32"));
  EXPECT_THAT(refusal([&] {
                append(OpKind::kEmbeddingGrad, {ids, dy}, EmbeddingAttributes{});
              }),
              HasSubstr("rows must be at least 1, got 0"));
}

// T = 7 steps, B = 2, I = 3, R = 5; four gates of lstm are 20 rows, three of gru 15.
TEST_F(Inference, RecurrentLayersReturnTheSequenceAndTheLastState) {
  const ValueId x = f32({7, 2, 3});
  const ValueId h0 = f32({2, 5});
  const auto lstm = append(OpKind::kLstm, {x, h0, h0, f32({20, 3}), f32({20, 5}), f32({20})});
  EXPECT_EQ(shape(lstm[0]), (Shape{7, 2, 5}));
  EXPECT_EQ(shape(lstm[2]), (Shape{2, 5}));
  EXPECT_EQ(shape(lstm[3]), (Shape{7, 2, 25}));  // four gates and c
  const auto gru = append(OpKind::kGru, {x, h0, f32({15, 3}), f32({15, 5}), f32({20})});
  EXPECT_EQ(shape(gru[0]), (Shape{7, 2, 5}));
  EXPECT_EQ(shape(gru[2]), (Shape{7, 2, 20}));
  EXPECT_THAT(refusal([&] {
                b.lstm(x, h0, h0, f32({15, 3}), f32({20, 5}), f32({20}), "l");
              }),
              AllOf(HasSubstr("lstm 'l'"), HasSubstr("w_ih must have shape [20,3], got [15,3]")));
  EXPECT_THAT(refusal([&] {
                b.lstm(x, h0, f32({3, 5}), f32({20, 3}), f32({20, 5}), f32({20}));
              }),
              HasSubstr("c0 must have shape [2,5], got [3,5]"));
}

TEST_F(Inference, RecurrentGradientsAccumulateIntoThreeSums) {
  const ValueId x = f32({7, 2, 3});
  const ValueId h = f32({2, 5});
  const ValueId y = f32({7, 2, 5});
  const ValueId w_ih = f32({20, 3}), w_hh = f32({20, 5}), bias = f32({20}), saved = f32({7, 2, 25});
  std::vector<ValueId> inputs{x, h, h, w_ih, w_hh, bias, y, h, h, saved, y, h, h};
  const auto first = append(OpKind::kLstmGrad, inputs);
  ASSERT_EQ(first.size(), 6u);
  EXPECT_EQ(shape(first[0]), (Shape{7, 2, 3}));
  EXPECT_EQ(shape(first[5]), (Shape{20}));
  inputs.insert(inputs.end(), {first[3], first[4], first[5]});
  EXPECT_EQ(append(OpKind::kLstmGrad, inputs, NoAttributes{}, true).size(), 6u);
  inputs.pop_back();
  EXPECT_THAT(refusal([&] { append(OpKind::kLstmGrad, inputs, NoAttributes{}, true); }),
              AllOf(HasSubstr("13 inputs and 3 running sums"), HasSubstr("got 15")));
}

TEST_F(Inference, LossesAreScalars) {
  const ValueId logits = f32({4, 3});
  const ValueId labels = i32({4});
  EXPECT_EQ(shape(b.softmax_cross_entropy(logits, labels)), Shape{});
  EXPECT_EQ(dtype(b.correct_count(logits, labels)), DType::kI32);
  EXPECT_EQ(shape(b.mean_squared_error(logits, logits)), Shape{});
  EXPECT_THAT(refusal([&] { b.softmax_cross_entropy(logits, i32({5})); }),
              HasSubstr("labels must have shape [4], got [5]"));
  EXPECT_THAT(refusal([&] { b.softmax_cross_entropy(logits, f32({4})); }),
              HasSubstr("labels must be i32, got f32"));
  EXPECT_THAT(refusal([&] { b.mean_squared_error(logits, f32({3, 4})); }), HasSubstr("[3,4]"));
}

TEST_F(Inference, OptimizersCheckTheirNumbers) {
  const ValueId w = b.parameter("w", {2});
  const ValueId g = f32({2});
  const ValueId m = b.source("m", {2}, DType::kF32, Role::kOptimizerState);
  const auto sgd = [&](SgdAttributes a, std::vector<ValueId> inputs) {
    return refusal([&] { append(OpKind::kSgd, inputs, a); });
  };
  EXPECT_EQ(append(OpKind::kSgd, {w, g}, SgdAttributes{}).size(), 1u);
  EXPECT_EQ(append(OpKind::kSgd, {w, g, m}, SgdAttributes{.momentum = 0.9}).size(), 2u);
  EXPECT_THAT(sgd({.momentum = 0.9}, {w, g}), HasSubstr("momentum 0.9 needs a third input"));
  EXPECT_THAT(sgd({.momentum = 1.0}, {w, g, m}), HasSubstr("momentum must lie in [0, 1), got 1"));
  EXPECT_THAT(sgd({.nesterov = true}, {w, g}), HasSubstr("nesterov needs a momentum"));
  EXPECT_THAT(sgd({.weight_decay = -1}, {w, g}),
              HasSubstr("weight_decay must be at least 0, got -1"));
  EXPECT_THAT(sgd({.rate = {.base = -0.1}}, {w, g}),
              HasSubstr("rate must be at least 0, got -0.1"));
  EXPECT_THAT(sgd({.rate = {.kind = LearningRate::Kind::kCosine}}, {w, g}),
              HasSubstr("cosine schedule needs period_steps of at least 1, got 0"));
  EXPECT_THAT(sgd({}, {w, f32({3})}), HasSubstr("gradient must have shape [2], got [3]"));
  EXPECT_EQ(append(OpKind::kAdam, {w, g, m, m}, AdamAttributes{}).size(), 3u);
  EXPECT_THAT(refusal([&] {
                append(OpKind::kAdam, {w, g, m, m}, AdamAttributes{.beta2 = 1.0});
              }),
              HasSubstr("beta2 must lie in [0, 1), got 1"));
}

}  // namespace
}  // namespace reprise::graph
