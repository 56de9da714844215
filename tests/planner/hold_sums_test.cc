// Sums over ranks stay under way as long as there is room, and nothing else changes.

#include "planner/hold_sums.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "planner/spread_sums.h"
#include "schedule/verify.h"
#include "tests/planner/plan_checks.h"
#include "tests/planner/sums_case.h"

namespace reprise::planner {
namespace {

using testing::check_plan;
using testing::distance;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::names;
using testing::three_layers;

constexpr Bytes kGradient = 64 * 64 * 4;

struct Case {
  graph::PreparedGraph prepared;
  GraphProblem problem;
  Plan plan;  // as the strategy made it
};

Case planned(graph::PreparedGraph prepared, const Strategy& strategy, bool at_floor) {
  Case made{.prepared = std::move(prepared), .problem = {}, .plan = {}};
  made.problem = make_problem(made.prepared);
  Request request{.problem = &made.problem.problem, .cache = make_plan_cache()};
  request.search_moves = 5;
  request.budget = at_floor ? strategy.floor(request) : Bytes{1} << 50;
  made.plan = std::get<Plan>(strategy.plan(request));
  return made;
}

schedule::Schedule lowered(const Case& made, const Plan& plan) {
  schedule::Schedule schedule = lower(made.prepared, made.problem, plan);
  EXPECT_THAT(schedule::verify(made.prepared, schedule), IsEmpty());
  return schedule;
}

Plan held(const Case& made, Bytes limit) {
  Plan plan = hold_sums(made.prepared, made.problem, made.plan, limit, {});
  EXPECT_EQ(check_plan(made.problem.problem, plan, limit), std::nullopt);
  EXPECT_EQ(plan.cost, made.plan.cost);
  EXPECT_TRUE(std::is_permutation(plan.order.begin(), plan.order.end(), made.plan.order.begin(),
                                  made.plan.order.end()));
  return plan;
}

// One row of activations is little beside gradients of 16 KiB, of which the plan has one at a time.
TEST(HoldSums, WithRoomForAllGradientsEveryWaitIsAtTheEnd) {
  const Case made = planned(three_layers(1), find_strategy("keep_all"), false);
  const Plan plan = held(made, made.plan.arena + 2 * kGradient);
  EXPECT_GT(plan.arena, made.plan.arena);
  EXPECT_THAT(names(made.prepared, lowered(made, plan), {"reduce/", "await/", "update/"}),
              ElementsAre("reduce/w2", "reduce/w1", "reduce/w0", "await/w2", "update/w2",
                          "await/w1", "update/w1", "await/w0", "update/w0"));
}

// With room for two, the first is awaited when the third is to be made.
TEST(HoldSums, WithRoomForTwoGradientsTheOldestGoesFirst) {
  const Case made = planned(three_layers(1), find_strategy("keep_all"), false);
  const Plan plan = held(made, made.plan.arena + kGradient);
  EXPECT_THAT(names(made.prepared, lowered(made, plan), {"reduce/", "await/", "update/"}),
              ElementsAre("reduce/w2", "reduce/w1", "await/w2", "update/w2", "reduce/w0",
                          "await/w1", "update/w1", "await/w0", "update/w0"));
}

// 1,000 rows of activations, 250 KiB a layer, go while gradients come: there is room without a byte
// more.
TEST(HoldSums, WhatTheBackwardPartFreesIsRoom) {
  const Case made = planned(three_layers(1000), find_strategy("keep_all"), false);
  const Plan plan = held(made, made.plan.arena);
  EXPECT_GT(distance(made.prepared, lowered(made, plan)),
            distance(made.prepared, lowered(made, made.plan)));
}

TEST(HoldSums, NoPlanOfAnyStrategyHidesLess) {
  for (const Strategy* strategy : all_strategies()) {
    for (const bool at_floor : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, floor {}", strategy->name(), at_floor));
      const Case made = planned(three_layers(100), *strategy, at_floor);
      for (const Bytes more : {Bytes{0}, kGradient / 2, 2 * kGradient}) {
        const Plan plan = held(made, made.plan.arena + more);
        EXPECT_GE(distance(made.prepared, lowered(made, plan)),
                  distance(made.prepared, lowered(made, made.plan)));
      }
    }
  }
}

TEST(HoldSums, OfRealModelsTooAndSpreadSumsGoesOnFromThere) {
  models::ModelOptions small{.batch = 4, .channels = 3, .height = 8, .width = 8, .classes = 3};
  graph::TrainingOptions training;
  training.optimizer = graph::SgdAttributes{.momentum = 0.9};
  training.ranks = graph::TrainingOptions::Ranks{};
  const Case made = planned(
      testing::prepare_without_backend(
          graph::make_training_graph(models::make_model("resnet20", small).graph, training).graph),
      find_strategy("auto"), true);
  const Plan plan = held(made, made.plan.arena + made.plan.arena / 10);
  const schedule::Schedule before = spread_sums(made.prepared, lowered(made, made.plan));
  const schedule::Schedule after = spread_sums(made.prepared, lowered(made, plan));
  EXPECT_THAT(schedule::verify(made.prepared, after), IsEmpty());
  EXPECT_GT(distance(made.prepared, after), distance(made.prepared, before));
}

// Updates at the end hold all gradients anyway; without ranks there is nothing to wait for.
TEST(HoldSums, OtherPlansStayAsTheyAre) {
  const Case last = planned(three_layers(100, true), find_strategy("keep_all"), false);
  EXPECT_EQ(held(last, last.plan.arena * 2).order, last.plan.order);
  const Case alone =
      planned(testing::prepare_training(
                  "mlp", {.batch = 4, .channels = 1, .height = 4, .width = 4, .classes = 3}),
              find_strategy("keep_all"), false);
  EXPECT_EQ(held(alone, alone.plan.arena * 2).order, alone.plan.order);
}

}  // namespace
}  // namespace reprise::planner
