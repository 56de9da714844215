// What the planner hands out at its default effort takes hardly more than its largest live sum.

#include "gtest/gtest.h"

#include "planner/strategy.h"
#include "tests/planner/prepared_model.h"

namespace reprise::planner {
namespace {

class PackedPlans : public ::testing::TestWithParam<const char*> {};

TEST_P(PackedPlans, HaveFewHolesAtHalfAndAtThirtyPercentOfTheMemory) {
  const GraphProblem p = make_problem(testing::prepare_training(GetParam(), {.batch = 8}));
  Request request;
  request.problem = &p.problem;
  request.budget = Bytes{1} << 60;
  request.search_moves = 20;
  request.cache = make_plan_cache();
  const auto kept = std::get<Plan>(find_strategy("keep_all").plan(request));
  int planned = 0;
  for (const int percent : {50, 30}) {
    SCOPED_TRACE(percent);
    request.budget = kept.arena / 100 * percent;
    const Outcome outcome = find_strategy("auto").plan(request);
    const auto* plan = std::get_if<Plan>(&outcome);
    if (plan == nullptr) continue;  // below the floor
    ++planned;
    EXPECT_LE(plan->arena, request.budget);
    EXPECT_LE(plan->packing.fragmentation(), percent == 50 ? 0.01 : 0.03);
  }
  EXPECT_GE(planned, 1);
}

INSTANTIATE_TEST_SUITE_P(Models, PackedPlans, ::testing::Values("resnet20", "unet", "densenet"),
                         [](const auto& param) { return std::string(param.param); });

// 16 MiB and a hole of 4: see Offsets.LeavesAHoleForTheBufferThatComesLater. Packing that may end
// at 16 MiB does; it looks no further.
TEST(PackingEffort, EndsWhereTheArenaIsSmallEnough) {
  constexpr Bytes kMiB = 1 << 20;
  const std::vector<schedule::Buffer> buffers = {
      {0, 2, 4 * kMiB}, {0, 4, 4 * kMiB}, {0, 2, 4 * kMiB}, {2, 4, 8 * kMiB}};
  EXPECT_LE(pack(buffers, {.enough = 16 * kMiB}).arena, 16 * kMiB);
  EXPECT_EQ(pack(buffers, {.enough = 0}).arena, 12 * kMiB);
}

}  // namespace
}  // namespace reprise::planner
