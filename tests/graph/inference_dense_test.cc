// Shapes of convolution, matrix products and normalisation, with the arithmetic beside them, and
// what these ops refuse.

#include <limits>

#include "tests/graph/inference_fixture.h"

namespace reprise::graph {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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
              HasSubstr("x must be f32 or bf16, got i32"));
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

// Over 3 ranks: a row of mean and variance for each.
TEST_F(Inference, BatchNormOverRanksReturnsMomentsAndTheirCombination) {
  const ValueId x = f32({4, 5, 2, 2});
  const ValueId parts = b.input("parts", {4}, DType::kI32);
  const ValueId moments = append(OpKind::kBatchNormMoments, {x, parts}, NoAttributes{})[0];
  EXPECT_EQ(shape(moments), (Shape{3, 2, 5}));
  const auto all = append(OpKind::kBatchNormCombine, {moments, parts}, CombineAttributes{4});
  for (const ValueId each : all) EXPECT_EQ(shape(each), (Shape{5}));
  const ValueId scale = f32({5});
  const auto y =
      append(OpKind::kBatchNormApply, {x, scale, scale, all[0], all[1], parts}, NormAttributes{});
  EXPECT_EQ(shape(y[0]), (Shape{4, 5, 2, 2}));
  const ValueId sums =
      append(OpKind::kBatchNormGradSums, {x, y[0], all[0], all[1], parts}, NormAttributes{})[0];
  EXPECT_EQ(shape(sums), (Shape{2, 5}));
  const auto grad = append(OpKind::kBatchNormGradInput,
                           {x, y[0], all[0], all[1], scale, sums, parts}, NormAttributes{});
  EXPECT_EQ(shape(grad[0]), (Shape{4, 5, 2, 2}));
  EXPECT_EQ(shape(grad[1]), (Shape{5}));
  EXPECT_EQ(shape(grad[2]), (Shape{5}));
}

TEST_F(Inference, BatchNormOverRanksRefusesPartsAndMomentsOfAnotherSize) {
  const ValueId x = f32({4, 5, 2, 2});
  const ValueId moments = f32({3, 2, 5});
  const auto moments_of = [&](ValueId parts) {
    return refusal([&] { append(OpKind::kBatchNormMoments, {x, parts}, NoAttributes{}); });
  };
  EXPECT_THAT(moments_of(b.input("one", {1}, DType::kI32)),
              HasSubstr("at least 2 elements, got 1"));
  EXPECT_THAT(moments_of(f32({4})), HasSubstr("parts must be i32, got f32"));
  EXPECT_THAT(refusal([&] {
                append(OpKind::kBatchNormCombine, {moments, b.input("two", {3}, DType::kI32)},
                       CombineAttributes{4});
              }),
              HasSubstr("moments must have shape [2,2,5], got [3,2,5]"));
  EXPECT_THAT(refusal([&] {
                append(OpKind::kBatchNormCombine, {moments, b.input("three", {4}, DType::kI32)},
                       CombineAttributes{0});
              }),
              HasSubstr("values must be at least 1, got 0"));
}

}  // namespace
}  // namespace reprise::graph
