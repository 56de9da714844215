// Shapes of pointwise ops, pooling and ops that move elements, and what they refuse.

#include "tests/graph/inference_fixture.h"

namespace reprise::graph {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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
  EXPECT_THAT(refusal([&] { b.add(x, i32({2, 3})); }), HasSubstr("must be f32 or bf16, got i32"));
  EXPECT_THAT(refusal([&] { b.mul(i32({2}), i32({2})); }), HasSubstr("must be f32, got i32"));
  EXPECT_THAT(refusal([&] { b.relu(i32({2})); }), HasSubstr("x must be f32 or bf16, got i32"));
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

}  // namespace
}  // namespace reprise::graph
