// Where operands may be bf16, and what then comes out.

#include "tests/graph/inference_fixture.h"

namespace reprise::graph {
namespace {

using testing::HasSubstr;

class Bf16Inference : public Inference {
 protected:
  ValueId bf16(Shape shape) { return b.cast(f32(std::move(shape)), DType::kBF16); }
  std::vector<DType> dtypes(const std::vector<ValueId>& values) {
    std::vector<DType> all;
    for (const ValueId value : values) all.push_back(dtype(value));
    return all;
  }
};

constexpr DType kF = DType::kF32;
constexpr DType kB = DType::kBF16;

TEST_F(Bf16Inference, CastGoesBothWaysAndNowhereElse) {
  const ValueId x = b.cast(f32({2, 3}), kB);
  EXPECT_EQ(dtype(x), kB);
  EXPECT_EQ(shape(x), (Shape{2, 3}));
  EXPECT_EQ(dtype(b.cast(x, kF)), kF);
  EXPECT_THAT(refusal([&] { b.cast(x, kB, "twice"); }),
              HasSubstr("cast 'twice': x is bf16 already"));
  EXPECT_THAT(refusal([&] { b.cast(i32({2}), kB); }), HasSubstr("not from i32 to bf16"));
}

TEST_F(Bf16Inference, ActivationsAreRoundedAndGradientsOfWeightsAreNot) {
  const ValueId x = bf16({2, 3, 5, 5}), w = bf16({4, 3, 3, 3}), dy = bf16({2, 4, 3, 3});
  EXPECT_EQ(dtype(b.conv2d(x, w, f32({4}))), kB);
  const Conv2dAttributes dx{.input_size = {5, 5}}, dw{.kernel = {3, 3}};
  EXPECT_EQ(dtypes(append(OpKind::kConv2dGradInput, {dy, w}, dx)), std::vector{kB});
  EXPECT_EQ(dtypes(append(OpKind::kConv2dGradWeight, {x, dy}, dw)), std::vector{kF});
  EXPECT_EQ(dtypes(append(OpKind::kBiasGrad, {dy}, AxisAttributes{.axis = 1})), std::vector{kF});
  const ValueId gamma = f32({3});
  EXPECT_EQ(dtypes(append(OpKind::kBatchNorm, {x, gamma, gamma}, NormAttributes{})),
            (std::vector{kB, kF, kF}));
  EXPECT_EQ(dtypes(append(OpKind::kBatchNormGrad, {x, x, gamma, gamma, gamma}, NormAttributes{})),
            (std::vector{kB, kF, kF}));
}

TEST_F(Bf16Inference, MatmulIsRoundedUnlessItIsAskedNotTo) {
  const ValueId a = bf16({2, 3}), c = bf16({3, 4});
  EXPECT_EQ(dtype(b.matmul(a, c)), kB);
  EXPECT_EQ(dtype(b.matmul(a, c, {.f32_result = true})), kF);
  EXPECT_EQ(dtypes(append(OpKind::kMatmul, {a, c, f32({2, 4})},
                          MatmulAttributes{.f32_result = true}, true)),
            std::vector{kF});
  EXPECT_THAT(refusal([&] {
                append(OpKind::kMatmul, {a, c, f32({2, 4})}, MatmulAttributes{}, true);
              }),
              HasSubstr("add into a sum of f32"));
  EXPECT_THAT(refusal([&] {
                b.matmul(f32({2, 3}), f32({3, 4}), {.f32_result = true});
              }),
              HasSubstr("f32_result is for bf16 operands, a is f32"));
}

TEST_F(Bf16Inference, MixedOperandsAreRefusedByBothNames) {
  const ValueId x = bf16({2, 3, 5, 5}), w = f32({4, 3, 3, 3});
  EXPECT_THAT(refusal([&] { b.conv2d(x, w); }),
              HasSubstr("x is bf16, weight is f32; cast one of them"));
  EXPECT_THAT(refusal([&] { b.add(f32({2}), bf16({2})); }),
              HasSubstr("the first input is f32, the second input is bf16"));
}

TEST_F(Bf16Inference, WhatHasNoSuchFormNamesTheInput) {
  const ValueId x = b.cast(f32({2, 3}), kB, "x16");
  EXPECT_THAT(refusal([&] { b.sigmoid(x, "curve"); }),
              HasSubstr("sigmoid 'curve': input 0, 'x16', is bf16, the op takes it as f32"));
  const ValueId gamma = b.cast(f32({3}), kB, "gamma16");
  EXPECT_THAT(refusal([&] {
                append(OpKind::kBatchNorm, {f32({2, 3}), gamma, f32({3})}, NormAttributes{});
              }),
              HasSubstr("input 1, 'gamma16', is bf16"));
}

TEST_F(Bf16Inference, PoolingKeepsTheDtypeAndItsIndices) {
  const ValueId x = bf16({2, 3, 4, 4});
  const Pool2dAttributes halves{.kernel = {2, 2}, .stride = {2, 2}};
  EXPECT_EQ(dtypes(append(OpKind::kMaxPool, {x}, halves)), (std::vector{kB, DType::kU8}));
  EXPECT_EQ(dtype(b.avg_pool(x, halves)), kB);
  EXPECT_EQ(dtype(b.global_avg_pool(x)), kB);
  EXPECT_EQ(dtype(b.reshape(x, {2, -1})), kB);
}

}  // namespace
}  // namespace reprise::graph
