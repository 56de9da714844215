// Local search at a ladder of targets: without a clock, whatever the number of threads.

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "planner/strategy.h"
#include "tests/planner/plan_checks.h"
#include "tests/planner/random_training.h"

namespace reprise::planner {
namespace {

TEST(Ladder, ThreadsDoNotChangeThePlan) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Problem problem = testing::TrainingDrawer(seed).run(14 + static_cast<int>(seed) * 4);
    Request request{.problem = &problem, .budget = Bytes{1} << 60, .search_moves = 20};
    const Bytes all = std::get<Plan>(find_strategy("keep_all").plan(request)).arena;
    const Bytes floor = find_strategy("auto").floor(request);
    request.budget = floor + (all - floor) * 2 / 5;
    const Plan alone = std::get<Plan>(find_strategy("auto").plan(request));
    EXPECT_EQ(testing::check_plan(problem, alone, request.budget), std::nullopt);
    request.threads = 3;
    const Plan plan = std::get<Plan>(find_strategy("auto").plan(request));
    EXPECT_EQ(plan.order, alone.order);
    EXPECT_EQ(plan.packing.offsets, alone.packing.offsets);
  }
}

}  // namespace
}  // namespace reprise::planner
