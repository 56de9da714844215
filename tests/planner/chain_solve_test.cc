// Cheapest plans for chains: against known answers, and against the shortest path over all
// schedules on random chains.

#include "gtest/gtest.h"

#include "chain_cases.h"
#include "planner/chain/bound.h"
#include "planner/chain/shortest.h"
#include "planner/chain/simulate.h"
#include "planner/chain/table.h"

namespace reprise::planner {
namespace {

// What every plan must keep to.
void check_plan(const ChainProblem& problem, const ChainPlan& plan, Bytes budget) {
  const ChainReplay r = replay(problem, plan.program.instructions());
  ASSERT_FALSE(r.fault) << r.fault->message;
  EXPECT_EQ(r.cost, plan.cost);
  EXPECT_EQ(r.peak, plan.peak);
  EXPECT_LE(r.peak, budget);
  EXPECT_LE(plan.lower_bound, plan.cost);
  EXPECT_LE(plan.lower_bound, plan.persistent_bound);
  if (plan.optimal == ChainProof::kAll) {
    EXPECT_EQ(plan.lower_bound, plan.cost);
  }
}

TEST(KnownChains, PersistentOptimumAndFloorAreExact) {
  int cases = 0;
  const nlohmann::json known_chains = chains::known().at("chains");
  for (const auto& c : known_chains) {
    const ChainProblem problem = chains::read(c.at("chain"));
    ASSERT_NO_THROW(validate(problem));
    const ChainTable table(problem, {});
    EXPECT_EQ(table.answers().front().memory, c.at("min_memory")) << c.at("id");
    for (const auto& k : c.at("cases")) {
      SCOPED_TRACE(c.at("id").dump() + " within " + k.at(0).dump());
      const ChainReplay r = replay(problem, table.plan(k.at(0)));
      ++cases;
      EXPECT_EQ(r.fault.has_value(), k.at(1).is_null());
      if (r.fault || k.at(1).is_null()) continue;
      EXPECT_EQ(r.cost, k.at(1));
      EXPECT_LE(r.peak, k.at(0));
    }
  }
  EXPECT_GT(cases, 200);
}

TEST(KnownChains, SolverReachesTheOptimumOverAllSchedules) {
  int known = 0;
  const nlohmann::json known_chains = chains::known().at("chains");
  for (const auto& c : known_chains) {
    const ChainSolver solver(chains::read(c.at("chain")));
    for (const auto& k : c.at("cases")) {
      SCOPED_TRACE(c.at("id").dump() + " within " + k.at(0).dump());
      const ChainOutcome outcome = solver.plan(k.at(0));
      if (k.at(1).is_null()) {
        ASSERT_TRUE(std::holds_alternative<ChainInfeasible>(outcome));
        EXPECT_EQ(std::get<ChainInfeasible>(outcome).floor, c.at("min_memory"));
        continue;
      }
      ASSERT_TRUE(std::holds_alternative<ChainPlan>(outcome));
      const auto& plan = std::get<ChainPlan>(outcome);
      check_plan(solver.problem(), plan, k.at(0));
      EXPECT_LE(plan.cost, k.at(1));
      EXPECT_EQ(plan.persistent_bound, k.at(1));
      if (k.size() < 3) continue;
      ++known;
      EXPECT_EQ(plan.cost, k.at(2));
      EXPECT_EQ(plan.optimal, ChainProof::kAll);
    }
  }
  EXPECT_GT(known, 50);
}

// The table's answers lie between the optimum of all schedules and keeping everything, the larger
// class below the smaller one, and they fall with the budget.
TEST(RandomChains, AgreeWithTheShortestPath) {
  Random random(20);
  int improved = 0, reached = 0, feasible = 0;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const ChainProblem problem = chains::random_chain(1 + random.below(5), 2, random);
    ASSERT_NO_THROW(validate(problem));
    const ChainTable persistent(problem, {});
    ChainTableOptions larger;
    larger.drop_inputs = true;
    const ChainTable dropping(problem, larger);
    ASSERT_TRUE(persistent.exact());
    EXPECT_EQ(persistent.answers().front().memory, dropping.answers().front().memory);
    const Bytes floor = persistent.answers().front().memory;
    EXPECT_TRUE(persistent.plan(floor - 1).empty());
    const auto none = shortest_schedule(problem, floor - 1, {1'000'000, 1'000'000, {}});
    EXPECT_TRUE(none.proven && none.cheaper.empty()) << "feasible below the floor " << floor;
    const Bytes step = 1 + (persistent.answers().back().memory - floor) / 4;
    for (Bytes budget = floor; budget < floor + 5 * step; budget += step) {
      const ChainReplay kept = replay(problem, persistent.plan(budget));
      const ChainReplay dropped = replay(problem, dropping.plan(budget));
      ASSERT_FALSE(kept.fault || dropped.fault);
      EXPECT_EQ(kept.cost, step_within(persistent.answers(), budget)->cost);
      EXPECT_EQ(dropped.cost, step_within(dropping.answers(), budget)->cost);
      EXPECT_LE(std::max(kept.peak, dropped.peak), budget);
      EXPECT_LE(dropped.cost, kept.cost);
      const auto best = shortest_schedule(problem, budget, {kept.cost + 1, 1'000'000, {}});
      ASSERT_TRUE(best.proven && !best.cheaper.empty());
      const ChainReplay least = replay(problem, best.cheaper);
      ASSERT_FALSE(least.fault) << least.fault->message;
      EXPECT_LE(least.peak, budget);
      EXPECT_LE(least.cost, dropped.cost);
      EXPECT_LE(chain_lower_bound(problem, budget), least.cost);
      ++feasible;
      improved += dropped.cost < kept.cost;
      reached += dropped.cost == least.cost;
    }
  }
  EXPECT_GT(improved, 0);
  RecordProperty("reached", reached);
  // 716 of 750 when this was written.
  EXPECT_GE(reached, feasible * 93 / 100) << reached << " of " << feasible;
}

TEST(RandomChains, SameRequestSamePlan) {
  Random random(21);
  for (int round = 0; round < 6; ++round) {
    const ChainProblem problem = chains::random_chain(11 + random.below(8), 3, random);
    const ChainSolver one(problem), other(problem);
    for (const StairStep& step : one.answers()) {
      const ChainOutcome a = one.plan(step.memory), b = other.plan(step.memory);
      const auto& plan = std::get<ChainPlan>(a);
      EXPECT_EQ(plan.program, std::get<ChainPlan>(b).program);
      check_plan(problem, plan, step.memory);
      EXPECT_LE(plan.cost, step.cost);
    }
  }
}

TEST(ChainSolver, ChainWithoutStagesIsItsLoss) {
  ChainProblem problem;
  problem.input = 3;
  problem.input_gradient = 2;
  problem.loss_cost = 7;
  problem.loss_workspace = 1;
  const ChainSolver solver(problem);
  const ChainOutcome outcome = solver.plan(6);
  ASSERT_TRUE(std::holds_alternative<ChainPlan>(outcome));
  EXPECT_EQ(std::get<ChainPlan>(outcome).cost, 7);
  EXPECT_EQ(std::get<ChainPlan>(outcome).optimal, ChainProof::kAll);
  EXPECT_EQ(std::get<ChainInfeasible>(solver.plan(5)).floor, 6);
}

TEST(ChainSolver, TakesTheOptionThatFits) {
  // One stage: records of 100 or of 10 bytes, the second with a backward stage three times as
  // dear. x_0 is 1, x_1 is 1, gradients 1, no workspace: 1 + 100 + 1 + 1 against 1 + 10 + 1 + 1.
  ChainProblem problem;
  problem.input = problem.input_gradient = 1;
  problem.stages = {{1, 1, 5, 0, {{5, 10, 100, 0, 0}, {5, 30, 10, 0, 0}}}};
  const ChainSolver solver(problem);
  EXPECT_EQ(std::get<ChainPlan>(solver.plan(103)).cost, 15);
  EXPECT_EQ(std::get<ChainPlan>(solver.plan(102)).cost, 35);
  EXPECT_EQ(std::get<ChainInfeasible>(solver.plan(12)).floor, 13);
}

TEST(ChainSolver, StopsWhenAsked) {
  Random random(22);
  ChainOptions options;
  options.stop = [] { return true; };
  const ChainSolver solver(chains::random_chain(20, 1, random), options);
  EXPECT_TRUE(std::holds_alternative<ChainStopped>(solver.plan(1'000'000)));
}

}  // namespace
}  // namespace reprise::planner
