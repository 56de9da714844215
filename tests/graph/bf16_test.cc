// Rounding to bf16, against bit patterns made by hand.

#include "graph/bf16.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "graph/types.h"

namespace reprise::graph {
namespace {

float of_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

TEST(Bf16, RoundsToTheNearestAndTiesToTheEvenOne) {
  EXPECT_EQ(to_bf16(1.0f), 0x3F80);
  EXPECT_EQ(to_bf16(of_bits(0x3F807FFF)), 0x3F80);  // just below the middle of two
  EXPECT_EQ(to_bf16(of_bits(0x3F808000)), 0x3F80);  // the middle: 0x3F80 is even
  EXPECT_EQ(to_bf16(of_bits(0x3F808001)), 0x3F81);
  EXPECT_EQ(to_bf16(of_bits(0x3F818000)), 0x3F82);  // the middle: 0x3F81 is odd
  EXPECT_EQ(to_bf16(of_bits(0xBF818000)), 0xBF82);
  EXPECT_EQ(to_bf16(of_bits(0x3FFFFFFF)), 0x4000);  // carries into the exponent: 2
  EXPECT_EQ(to_bf16(-0.0f), 0x8000);
}

TEST(Bf16, KeepsSubnormalNumbers) {
  EXPECT_EQ(to_bf16(of_bits(0x00010000)), 0x0001);  // 2^-133, the smallest
  EXPECT_EQ(to_bf16(of_bits(0x00008000)), 0x0000);  // half of it: even
  EXPECT_EQ(to_bf16(of_bits(0x00008001)), 0x0001);
  EXPECT_EQ(to_bf16(of_bits(0x807F8000)), 0x8080);  // up into the normal ones: -2^-126
}

TEST(Bf16, CarriesWhatIsTooLargeIntoInfinityAndKeepsNaNs) {
  EXPECT_EQ(to_bf16(of_bits(0x7F7F7FFF)), 0x7F7F);  // the largest finite one
  EXPECT_EQ(to_bf16(of_bits(0x7F7F8000)), 0x7F80);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(to_bf16(-std::numeric_limits<float>::infinity()), 0xFF80);
  // A NaN whose upper half looks like infinity, and one that a carry would turn into -0.
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(of_bits(0x7F800001)))));
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(of_bits(0xFFFFFFFF)))));
}

TEST(Bf16, OfADoubleIsRoundedOnce) {
  // 1 + 2^-8 + 2^-40 lies above the middle of 1 and 1 + 2^-7; as f32 it would lie in the middle.
  EXPECT_EQ(nearest_bf16(1.0 + 0x1p-8 + 0x1p-40), 1.0 + 0x1p-7);
  EXPECT_EQ(nearest_bf16(1.0 + 0x1p-8), 1.0);
  EXPECT_EQ(nearest_bf16(0x1p-134), 0.0);
  EXPECT_EQ(nearest_bf16(0x1.8p-134), 0x1p-133);
  EXPECT_EQ(nearest_bf16(-0x1.ffp127), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(nearest_bf16(0x1.feffp127), 0x1.fep127);
  EXPECT_TRUE(std::isnan(nearest_bf16(std::nan(""))));
  EXPECT_TRUE(std::signbit(nearest_bf16(-0.0)));
}

TEST(Bf16, OfAFloatIsTheSameOnBothWays) {
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) {
    const float number = of_bits(static_cast<std::uint32_t>(random()));
    if (std::isnan(number)) continue;
    EXPECT_EQ(static_cast<double>(from_bf16(to_bf16(number))),
              nearest_bf16(static_cast<double>(number)))
        << number;
  }
}

TEST(Bf16, HasTwoBytesAndAName) {
  EXPECT_EQ(dtype_bytes(DType::kBF16), 2);
  EXPECT_EQ(parse_dtype("bf16"), DType::kBF16);
  EXPECT_TRUE(is_float(DType::kBF16));
  EXPECT_FALSE(is_float(DType::kI32));
}

}  // namespace
}  // namespace reprise::graph
