#include <random>

#include "gtest/gtest.h"

#include "tests/planner/plan_checks.h"
#include "tests/planner/random_training.h"
#include "tests/schedule/random_problem.h"

namespace reprise::planner {
namespace {

void expect_all_hold(const Problem& problem, std::uint64_t seed) {
  const auto fault = testing::check_all_strategies(problem);
  if (!fault) return;
  const Problem small = testing::shrink(problem);
  const auto small_fault = testing::check_all_strategies(small);
  FAIL() << "seed " << seed << ": " << *fault << "\nshrunk: " << small_fault.value_or("gone")
         << "\n"
         << testing::print(small);
}

TEST(Strategies, KeepTheirPromisesOnRandomTrainingSteps) {
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    const Problem problem =
        testing::TrainingDrawer(seed).run(2 + static_cast<std::int64_t>(seed % 14));
    ASSERT_TRUE(testing::is_sound(problem)) << "seed " << seed;
    expect_all_hold(problem, seed);
    if (HasFatalFailure()) return;
  }
}

TEST(Strategies, KeepTheirPromisesOnRandomProblemsOfAnyShape) {
  int sound = 0;
  for (std::uint64_t seed = 1; sound < 250; ++seed) {
    std::mt19937_64 random(seed);
    const Problem problem = schedule::testing::draw_problem(random);
    if (!testing::is_sound(problem)) continue;
    ++sound;
    expect_all_hold(problem, seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace reprise::planner
