// Small op graphs whose cheapest order within a budget of live bytes is known.

#include "gtest/gtest.h"

#include "planner/annealer.h"
#include "planner/candidates.h"
#include "planner/strategy.h"
#include "planner/structure.h"
#include "tests/planner/op_graphs.h"

namespace reprise::planner {
namespace {

using testing::graphs;
using testing::read_problem;

TEST(KnownOptima, LocalSearchNeverBeatsThemAndReachesNearlyAll) {
  int cases = 0, reached = 0;
  for (const auto& graph : graphs()) {
    const Problem problem = read_problem(graph);
    ASSERT_NO_THROW(schedule::validate(problem));
    const Structure structure(problem);
    for (const auto& c : graph.at("cases")) {
      SCOPED_TRACE(problem.name + " within " + c.at(0).dump());
      AnnealOptions options;
      options.target = c.at(0);
      options.moves = 20'000;
      const AnnealResult found = anneal(structure, program_order(problem), options);
      ++cases;
      const bool fits = found.live_peak <= options.target;
      const auto traced = schedule::trace_order(problem, found.order);
      ASSERT_FALSE(traced.fault) << traced.fault->message;
      EXPECT_EQ(schedule::profile_memory(traced.trace).peak, found.live_peak);
      EXPECT_EQ(traced.trace.cost, found.cost);
      if (c.at(1).is_null()) {
        EXPECT_FALSE(fits) << "planned within a budget known to be too small";
        reached += !fits;
      } else {
        if (fits) {
          EXPECT_GE(found.cost, c.at(1).get<std::int64_t>());
        }
        reached += fits && found.cost == c.at(1).get<std::int64_t>();
      }
    }
  }
  RecordProperty("reached", reached);
  // 159 of 162 when this was written; moves of another kind may lose one or two.
  EXPECT_GE(reached, cases * 95 / 100) << reached << " of " << cases;
}

TEST(KnownOptima, NoStrategyReportsACostBelowThem) {
  for (const auto& graph : graphs()) {
    const Problem problem = read_problem(graph);
    Request request;
    request.problem = &problem;
    request.cache = make_plan_cache();
    request.packing.alignment = 1;
    request.search_moves = 20;
    for (const auto& c : graph.at("cases")) {
      request.budget = c.at(0);
      for (const Strategy* strategy : all_strategies()) {
        SCOPED_TRACE(problem.name + " within " + c.at(0).dump() + " by " +
                     std::string(strategy->name()));
        const Outcome outcome = strategy->plan(request);
        if (const Plan* plan = std::get_if<Plan>(&outcome)) {
          ASSERT_FALSE(c.at(1).is_null());
          EXPECT_GE(plan->cost, c.at(1).get<std::int64_t>());
        }
      }
    }
  }
}

// Budgets of live bytes are the ones the optima are known for.
TEST(KnownOptima, PlansByLivePeakFitIt) {
  for (const auto& graph : graphs()) {
    const Problem problem = read_problem(graph);
    Request request;
    request.problem = &problem;
    request.cache = make_plan_cache();
    request.measure = Measure::kLivePeak;
    request.search_moves = 20;
    for (const OrderFreedom freedom : {OrderFreedom::kFree, OrderFreedom::kFixed}) {
      request.order = freedom;
      for (const auto& c : graph.at("cases")) {
        const auto& known = c.at(freedom == OrderFreedom::kFree ? 1 : 2);
        request.budget = c.at(0);
        for (const Strategy* strategy : all_strategies()) {
          SCOPED_TRACE(problem.name + " within " + c.at(0).dump() + " by " +
                       std::string(strategy->name()));
          const Outcome outcome = strategy->plan(request);
          const Plan* plan = std::get_if<Plan>(&outcome);
          if (plan == nullptr) continue;
          ASSERT_FALSE(known.is_null());
          EXPECT_GE(plan->cost, known.get<std::int64_t>());
          EXPECT_EQ(plan->arena, plan->live_peak);
          EXPECT_TRUE(plan->packing.offsets.empty());
          const auto traced = schedule::trace_order(problem, plan->order);
          ASSERT_FALSE(traced.fault) << traced.fault->message;
          EXPECT_EQ(schedule::profile_memory(traced.trace).peak, plan->live_peak);
          EXPECT_LE(plan->live_peak, request.budget);
          EXPECT_GE(plan->cost, cost_lower_bound(problem, freedom));
          if (freedom == OrderFreedom::kFixed) {
            EXPECT_TRUE(is_fixed_order(problem, plan->order));
          }
        }
      }
    }
  }
}

// a = 1 byte, b = 2, c = 2: a > b > c, 'unused' reads a. In any order it is left out.
TEST(FixedOrder, RunsEveryOpWhereAFreeOrderLeavesOutWhatNobodyNeeds) {
  Problem problem;
  problem.name = "unused";
  problem.tensors.push_back({"a", 1, schedule::TensorKind::kResident});
  problem.tensors.push_back({"b", 2, schedule::TensorKind::kTemp});
  problem.tensors.push_back({"c", 2, schedule::TensorKind::kOutput});
  problem.ops.push_back({.name = "unused",
                         .inputs = {schedule::TensorId(0u)},
                         .outputs = {schedule::TensorId(1u)},
                         .cost = 5,
                         .inplace = {}});
  problem.ops.push_back({.name = "needed",
                         .inputs = {schedule::TensorId(0u)},
                         .outputs = {schedule::TensorId(2u)},
                         .cost = 7,
                         .inplace = {}});
  Request request;
  request.problem = &problem;
  request.budget = 100;
  for (const Strategy* strategy : all_strategies()) {
    request.order = OrderFreedom::kFree;
    EXPECT_EQ(std::get<Plan>(strategy->plan(request)).cost, 7) << strategy->name();
    request.order = OrderFreedom::kFixed;
    EXPECT_EQ(std::get<Plan>(strategy->plan(request)).cost, 12) << strategy->name();
  }
}

}  // namespace
}  // namespace reprise::planner
