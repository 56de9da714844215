// Lower bounds: never above what is known to be possible, and above the plain sum where budgets
// bind.

#include "planner/cost_bound.h"

#include "gtest/gtest.h"

#include "planner/linear_program.h"
#include "planner/staged_program.h"
#include "tests/planner/op_graphs.h"
#include "tests/planner/random_training.h"

namespace reprise::planner {
namespace {

bool has_solver() {
  LinearProgram program;
  program.add_column(1, 0, 1);
  program.add(0, -1);
  program.end_row(-0.5);
  return row_multipliers(program, {.iterations = 100, .stop = {}}).has_value();
}

// x in [0, 4], y in [0, 3], -x - y <= -5; minimize 2 x + 3 y: x = 4, y = 1, cost 11.
LinearProgram small_program() {
  LinearProgram program;
  program.add_column(2, 0, 4);
  program.add_column(3, 0, 3);
  program.add(0, -1);
  program.add(1, -1);
  program.end_row(-5);
  return program;
}

TEST(DualBound, HoldsForAnyMultipliersAndIsReachedByTheBest) {
  const LinearProgram program = small_program();
  EXPECT_NEAR(dual_bound(program, {3}), 11, 1e-6);  // 15 + min(-1 * 4) + 0
  EXPECT_NEAR(dual_bound(program, {2}), 10, 1e-6);
  EXPECT_NEAR(dual_bound(program, {-7}), 0, 1e-6);
  for (double m = 0; m < 20; m += 0.37) EXPECT_LE(dual_bound(program, {m}), 11);
}

TEST(DualBound, IsReachedByTheSolver) {
  if (!has_solver()) GTEST_SKIP() << "built without Clp";
  const auto multipliers = row_multipliers(small_program(), {.iterations = 100, .stop = {}});
  ASSERT_TRUE(multipliers);
  EXPECT_NEAR(dual_bound(small_program(), *multipliers), 11, 1e-6);
}

TEST(CostBound, IsNeverAboveAKnownOptimum) {
  int cases = 0;
  int above_required = 0;
  int reached = 0;
  for (const auto& graph : testing::graphs()) {
    const Problem problem = testing::read_problem(graph);
    for (const OrderFreedom freedom : {OrderFreedom::kFree, OrderFreedom::kFixed}) {
      const std::int64_t required = cost_lower_bound(problem, freedom);
      Bytes smallest = 0;
      for (const auto& c : graph.at("cases")) {
        const auto& known = c.at(freedom == OrderFreedom::kFree ? 1 : 2);
        if (known.is_null()) continue;
        SCOPED_TRACE(problem.name + " within " + c.at(0).dump());
        if (smallest == 0) smallest = c.at(0);
        const std::int64_t optimum = known;
        // Few anchors, and a simplex method that is cut short, give a bound as well.
        for (const std::int64_t iterations : {1, 10, 20'000}) {
          BoundOptions options;
          options.iterations = iterations;
          const std::int64_t bound = cost_bound(problem, freedom, c.at(0), options);
          EXPECT_LE(bound, optimum);
          EXPECT_GE(bound, required);
          options.most_columns = 200;
          EXPECT_LE(cost_bound(problem, freedom, c.at(0), options), optimum);
        }
        const std::int64_t bound = cost_bound(problem, freedom, c.at(0));
        ++cases;
        above_required += bound > required;
        reached += bound == optimum;
      }
      EXPECT_LE(memory_bound(problem, freedom), smallest) << problem.name;
    }
  }
  if (!has_solver()) return;
  EXPECT_GT(above_required, cases / 2) << "of " << cases;
  EXPECT_GT(reached, cases / 3) << "of " << cases;
}

// A plan is an execution: its cost is never below the bound at its own peak.
TEST(CostBound, IsNeverAboveAPlanOfRandomTraining) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem problem =
        testing::TrainingDrawer(seed).run(2 + static_cast<std::int64_t>(seed % 14));
    for (const OrderFreedom freedom : {OrderFreedom::kFree, OrderFreedom::kFixed}) {
      Request request;
      request.problem = &problem;
      request.measure = Measure::kLivePeak;
      request.order = freedom;
      request.search_moves = 10;
      request.cache = make_plan_cache();
      const Strategy& strategy = find_strategy("auto");
      const Bytes floor = strategy.floor(request);
      EXPECT_LE(memory_bound(problem, freedom), floor) << "seed " << seed;
      for (const Bytes budget : {floor, floor + floor / 8, floor + floor / 3}) {
        if (budget <= 0) continue;
        request.budget = budget;
        const auto plan = std::get<Plan>(strategy.plan(request));
        EXPECT_LE(cost_bound(problem, freedom, budget), plan.cost)
            << "seed " << seed << ", budget " << budget;
      }
    }
  }
}

}  // namespace
}  // namespace reprise::planner
