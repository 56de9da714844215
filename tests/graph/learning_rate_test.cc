#include "graph/learning_rate.h"

#include <gtest/gtest.h>
#include <limits>

namespace reprise::graph {
namespace {

using Kind = LearningRate::Kind;

TEST(LearningRates, StayConstant) {
  const LearningRate rate{.base = 0.1};
  EXPECT_EQ(rate.at(0), 0.1);
  EXPECT_EQ(rate.at(1'000'000), 0.1);
}

TEST(LearningRates, WarmUpInEqualStepsToTheBase) {
  const LearningRate rate{.base = 0.8, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(rate.at(0), 0.2);  // 0.8 * 1/4
  EXPECT_DOUBLE_EQ(rate.at(1), 0.4);
  EXPECT_DOUBLE_EQ(rate.at(3), 0.8);  // the last warm-up step has the full rate
  EXPECT_DOUBLE_EQ(rate.at(4), 0.8);
}

TEST(LearningRates, DropByTheFactorEveryPeriodAfterTheWarmUp) {
  const LearningRate rate{
      .kind = Kind::kStep, .base = 1.0, .warmup_steps = 2, .period_steps = 3, .factor = 0.5};
  EXPECT_DOUBLE_EQ(rate.at(2), 1.0);
  EXPECT_DOUBLE_EQ(rate.at(4), 1.0);   // third step of the first period
  EXPECT_DOUBLE_EQ(rate.at(5), 0.5);   // 2 + 3
  EXPECT_DOUBLE_EQ(rate.at(8), 0.25);  // 2 + 6
}

TEST(LearningRates, FallAlongHalfACosine) {
  const LearningRate rate{.kind = Kind::kCosine, .base = 1.0, .period_steps = 4, .final_rate = 0.2};
  EXPECT_DOUBLE_EQ(rate.at(0), 1.0);
  EXPECT_DOUBLE_EQ(rate.at(2), 0.6);  // halfway: the mean of 1.0 and 0.2
  EXPECT_DOUBLE_EQ(rate.at(4), 0.2);
  EXPECT_DOUBLE_EQ(rate.at(std::numeric_limits<std::uint64_t>::max()), 0.2);
}

TEST(LearningRates, KindsReadBack) {
  for (Kind kind : {Kind::kConstant, Kind::kStep, Kind::kCosine}) {
    EXPECT_EQ(parse_learning_rate_kind(learning_rate_kind_name(kind)), kind);
  }
}

}  // namespace
}  // namespace reprise::graph
