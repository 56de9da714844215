#include <random>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "planner/candidates.h"
#include "planner/exact_search.h"
#include "planner/ladder.h"
#include "planner/strategies.h"
#include "tests/planner/op_graphs.h"
#include "tests/planner/plan_checks.h"
#include "tests/planner/random_training.h"
#include "tests/schedule/random_problem.h"

namespace reprise::planner {
namespace {

constexpr std::int64_t kStates = 100'000;
constexpr OrderFreedom kFreedoms[] = {OrderFreedom::kFree, OrderFreedom::kFixed};

using Kind = ExactAnswer::Kind;

void expect_cost(const Problem& problem, OrderFreedom freedom, Bytes budget,
                 const nlohmann::json& known) {
  SCOPED_TRACE(fmt::format("{} within {}, order {}", problem.name, budget,
                           freedom == OrderFreedom::kFree ? "free" : "fixed"));
  const ExactAnswer answer = solve_exactly(ExactModel(problem, freedom), budget, kStates);
  if (known.is_null()) {
    EXPECT_EQ(answer.kind, Kind::kInfeasible);
    return;
  }
  ASSERT_EQ(answer.kind, Kind::kOptimal);
  EXPECT_EQ(answer.cost, known.get<std::int64_t>());
  EXPECT_EQ(answer.cost_bound, answer.cost);
  const auto traced = schedule::trace_order(problem, answer.order);
  ASSERT_FALSE(traced.fault) << traced.fault->message;
  EXPECT_EQ(traced.trace.cost, answer.cost);
  EXPECT_LE(schedule::profile_memory(traced.trace).peak, budget);
  if (freedom == OrderFreedom::kFixed) {
    EXPECT_TRUE(is_fixed_order(problem, answer.order));
  }
}

TEST(Exact, ReachesEveryKnownOptimum) {
  for (const auto& graph : testing::graphs()) {
    const Problem problem = testing::read_problem(graph);
    for (std::size_t i : {0u, 1u}) {
      for (const auto& c : graph.at("cases")) {
        expect_cost(problem, kFreedoms[i], c.at(0), c.at(1 + i));
      }
    }
  }
}

TEST(Exact, ProvesTheSmallestBudget) {
  for (const auto& graph : testing::graphs()) {
    const Problem problem = testing::read_problem(graph);
    for (std::size_t i : {0u, 1u}) {
      const Bytes least = graph.at("least").at(i);
      SCOPED_TRACE(problem.name);
      Request request;
      request.problem = &problem;
      request.order = kFreedoms[i];
      request.measure = Measure::kLivePeak;
      request.budget = least - 1;
      request.cache = make_plan_cache();
      for (const Strategy* strategy : {&exact_strategy(), &auto_strategy()}) {
        const Infeasible answer = std::get<Infeasible>(strategy->plan(request));
        EXPECT_EQ(answer.floor, least);
        EXPECT_EQ(answer.proven_floor, least);
      }
      request.budget = least;
      const Plan plan = std::get<Plan>(exact_strategy().plan(request));
      EXPECT_EQ(plan.cost_lower_bound, plan.cost);
    }
  }
}

// Everything that other strategies find, on problems with optional in-place pairs, outputs made
// again, inputs that die.
void expect_nothing_better(const Problem& problem, OrderFreedom freedom) {
  Request request;
  request.problem = &problem;
  request.order = freedom;
  request.measure = Measure::kLivePeak;
  request.search_moves = 30;
  Frontier exact(request), searched(request);
  if (!offer_exact(request, kStates, exact)) return;
  const Structure structure(problem, freedom);
  searched.offer(program_order(problem, freedom), "keep_all");
  offer_all(structure, searched);
  offer_searched(structure, request, searched);
  for (const Plan& plan : searched.plans()) {
    EXPECT_GE(plan.live_peak, exact.proven_floor());
    EXPECT_GE(plan.cost, exact.cost_bound(plan.live_peak));
    EXPECT_TRUE(exact.covers(plan.live_peak, plan.cost));
  }
  for (const Plan& plan : exact.plans()) {
    EXPECT_EQ(plan.cost, exact.cost_bound(plan.live_peak));
  }
}

TEST(Exact, IsNeverBeatenOnRandomProblems) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    for (const OrderFreedom freedom : kFreedoms) {
      expect_nothing_better(testing::TrainingDrawer(seed).run(1 + static_cast<int>(seed % 4)),
                            freedom);
      std::mt19937_64 random(seed);
      const Problem problem = schedule::testing::draw_problem(random);
      if (testing::is_sound(problem)) expect_nothing_better(problem, freedom);
    }
    if (HasFailure()) return;
  }
}

// A budget of 20 bytes takes more than ten states on the five-op chain (cost 38, 28 at least).
TEST(Exact, GivesUpWithABoundWhenStatesRunOut) {
  const Problem problem = testing::read_problem(testing::graphs().at(0));
  const ExactModel model(problem, OrderFreedom::kFree);
  const ExactAnswer few = solve_exactly(model, 20, 10);
  EXPECT_EQ(few.kind, Kind::kGivenUp);
  EXPECT_GE(few.cost_bound, 28);
  EXPECT_LE(few.cost_bound, 38);
  const ExactAnswer stopped = solve_exactly(model, 20, kStates, [] { return true; });
  EXPECT_EQ(stopped.kind, Kind::kGivenUp);
}

}  // namespace
}  // namespace reprise::planner
