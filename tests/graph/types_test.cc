#include "graph/types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/small_graphs.h"

namespace reprise::graph {
namespace {

TEST(Shapes, AreWrittenLikeLists) {
  EXPECT_EQ(shape_text({}), "[]");
  EXPECT_EQ(shape_text({8, 3, 224, 224}), "[8,3,224,224]");
}

TEST(Shapes, CountElements) {
  EXPECT_EQ(element_count({}), 1);  // a scalar
  EXPECT_EQ(element_count({2, 3, 4}), 24);
  EXPECT_EQ(element_count({5, 0}), 0);
}

TEST(Shapes, RefuseNegativeAxesAndOverflow) {
  EXPECT_THAT(input_error_of([] { (void)element_count({2, -1}); }), testing::HasSubstr("[2,-1]"));
  // 2^32 * 2^31 = 2^63, one more than fits.
  const Shape huge{Dim{1} << 32, Dim{1} << 31};
  EXPECT_THAT(input_error_of([&] { (void)element_count(huge); }),
              testing::HasSubstr("4294967296,2147483648"));
}

TEST(Names, OfTypesReadBack) {
  for (DType dtype : {DType::kF32, DType::kI32, DType::kU8}) {
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  }
  for (Role role : {Role::kInput, Role::kParameter, Role::kOptimizerState, Role::kState,
                    Role::kActivation, Role::kGradient, Role::kUpdate}) {
    EXPECT_EQ(parse_role(role_name(role)), role);
  }
  for (Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
    EXPECT_EQ(parse_phase(phase_name(phase)), phase);
  }
}

TEST(Names, UnknownOnesListTheKnown) {
  const std::string message = input_error_of([] { (void)parse_dtype("f16"); });
  EXPECT_THAT(message, testing::HasSubstr("'f16'"));
  EXPECT_THAT(message, testing::HasSubstr("f32, i32, u8"));
}

TEST(Bytes, OfOneElement) {
  EXPECT_EQ(dtype_bytes(DType::kF32), 4);
  EXPECT_EQ(dtype_bytes(DType::kI32), 4);
  EXPECT_EQ(dtype_bytes(DType::kU8), 1);
}

}  // namespace
}  // namespace reprise::graph
