#include "graph/random.h"

#include <cmath>
#include <gtest/gtest.h>

namespace reprise::graph {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers for philox4x32-10 that Random123 publishes (kat_vectors).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomBits, PlaceTheirCoordinatesInCounterAndKey) {
  const StepContext context{.seed = 0x299f31d0a4093822, .step = 0x0000'0001'13198a2e};
  const std::uint64_t block = 0x85a308d3'243f6a88 >> 2;  // so that block * 4 fits
  const Words words =
      philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                  0x13198a2e, 7u ^ (1u << 16)},
                 {0xa4093822, 0x299f31d0});
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(random_bits(context, 7, block * 4 + i), words[i]) << "word " << i;
  }
}

TEST(RandomBits, DifferBetweenSeedsStepsStreamsAndElements) {
  const std::uint32_t bits = random_bits({.seed = 1, .step = 2}, 3, 4);
  EXPECT_NE(bits, random_bits({.seed = 2, .step = 2}, 3, 4));
  EXPECT_NE(bits, random_bits({.seed = 1, .step = 3}, 3, 4));
  EXPECT_NE(bits, random_bits({.seed = 1, .step = 2}, 4, 4));
  EXPECT_NE(bits, random_bits({.seed = 1, .step = 2}, 3, 5));
}

TEST(Dropout, ThresholdIsTheProbabilityOfTheWholeRange) {
  EXPECT_EQ(dropout_threshold(0.0), 0u);
  EXPECT_EQ(dropout_threshold(0.5), 0x80000000u);
  EXPECT_EQ(dropout_threshold(0.25), 0x40000000u);
  EXPECT_EQ(dropout_threshold(std::nextafter(1.0, 0.0)), 0xffffffffu);  // capped
}

TEST(Dropout, DropsAboutTheShareAskedFor) {
  const std::uint32_t threshold = dropout_threshold(0.3);
  int dropped = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    dropped += random_bits({.seed = 5, .step = 1}, 0, i) < threshold ? 1 : 0;
  }
  EXPECT_NEAR(dropped, 3'000, 230);  // 5 standard deviations: 5 * sqrt(10000 * 0.3 * 0.7) = 229
}

}  // namespace
}  // namespace reprise::graph
