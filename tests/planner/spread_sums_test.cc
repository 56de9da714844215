// Sums over ranks begin as early and are awaited as late as the bytes allow, and nothing else
// changes.

#include "planner/spread_sums.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "schedule/buckets.h"
#include "schedule/verify.h"
#include "tests/planner/plan_checks.h"
#include "tests/planner/prepared_model.h"
#include "tests/planner/sums_case.h"

namespace reprise::planner {
namespace {

using graph::OpKind;
using schedule::Schedule;
using testing::distance;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::names;
using testing::three_layers;

struct Case {
  graph::PreparedGraph prepared;
  Schedule before, after;
};

Case spread(graph::PreparedGraph prepared, const Strategy& strategy, bool at_floor) {
  Case made{.prepared = std::move(prepared), .before = {}, .after = {}};
  const GraphProblem problem = make_problem(made.prepared);
  Request request{.problem = &problem.problem, .cache = make_plan_cache()};
  request.search_moves = 5;
  request.budget = Bytes{1} << 50;
  if (at_floor) request.budget = strategy.floor(request);
  made.before = lower(made.prepared, problem, std::get<Plan>(strategy.plan(request)));
  made.after = spread_sums(made.prepared, made.before);
  return made;
}

void expect_only_reordered(const Case& made) {
  EXPECT_THAT(schedule::verify(made.prepared, made.after), IsEmpty());
  EXPECT_EQ(made.after.slots, made.before.slots);
  EXPECT_EQ(made.after.arena_bytes, made.before.arena_bytes);
  EXPECT_TRUE(std::is_permutation(made.after.instructions.begin(), made.after.instructions.end(),
                                  made.before.instructions.begin(),
                                  made.before.instructions.end()));
}

// Gives each gradient, with its sum, a place that nothing else has.
void take_apart(const graph::PreparedGraph& prepared, Schedule& schedule) {
  for (const auto& each : schedule.instructions) {
    const OpKind op = prepared.graph.nodes[each.node].op;
    if (op == OpKind::kAllReduce) {
      schedule.slots[each.reads[0]].offset = schedule.arena_bytes;
      schedule.slots[each.writes[0]].offset = schedule.arena_bytes;
      schedule.arena_bytes += base::align_up(schedule.slots[each.reads[0]].bytes, 64);
    } else if (op == OpKind::kAwait) {
      schedule.slots[each.writes[0]].offset = schedule.slots[each.reads[0]].offset;
    }
  }
}

TEST(SpreadSums, WaitsGoToTheEndWhereNobodyWantsTheBytes) {
  Case made = spread(three_layers(1), find_strategy("keep_all"), false);
  EXPECT_THAT(names(made.prepared, made.before, {"reduce/", "await/", "update/"}),
              ElementsAre("reduce/w2", "await/w2", "update/w2", "reduce/w1", "await/w1",
                          "update/w1", "reduce/w0", "await/w0", "update/w0"));
  take_apart(made.prepared, made.before);
  made.after = spread_sums(made.prepared, made.before);
  expect_only_reordered(made);
  EXPECT_THAT(names(made.prepared, made.after, {"reduce/", "await/", "update/"}),
              ElementsAre("reduce/w2", "reduce/w1", "reduce/w0", "await/w2", "update/w2",
                          "await/w1", "update/w1", "await/w0", "update/w0"));
  EXPECT_TRUE(made.after.instructions.back().node ==
              made.prepared.graph.values[made.prepared.graph.updates.back().final].producer);
}

// The gradient of w1 takes the bytes of w2's: w2 is awaited and updated just before.
TEST(SpreadSums, AWaitEndsWhereOtherBytesNeedThePlace) {
  Case made = spread(three_layers(1), find_strategy("keep_all"), false);
  take_apart(made.prepared, made.before);
  Bytes place = -1;
  for (const auto& each : made.before.instructions) {
    const std::string& name = made.prepared.graph.nodes[each.node].name;
    if (name == "reduce/w2") place = made.before.slots[each.reads[0]].offset;
    if (name != "reduce/w1" && name != "await/w1") continue;
    made.before.slots[each.reads[0]].offset = place;
    made.before.slots[each.writes[0]].offset = place;
  }
  made.after = spread_sums(made.prepared, made.before);
  EXPECT_THAT(schedule::verify(made.prepared, made.after), IsEmpty());
  EXPECT_THAT(names(made.prepared, made.after, {"reduce/", "await/", "update/"}),
              ElementsAre("reduce/w2", "await/w2", "update/w2", "reduce/w1", "reduce/w0",
                          "await/w1", "update/w1", "await/w0", "update/w0"));
  // Between its begin and its wait is the gradient of the activation, which needs no w2 gradient.
  EXPECT_GT(distance(made.prepared, made.after), distance(made.prepared, made.before));
}

TEST(SpreadSums, AnyPlanIsOnlyReorderedAndHidesNoLess) {
  for (const bool updates_last : {false, true}) {
    for (const Strategy* strategy : all_strategies()) {
      for (const bool at_floor : {false, true}) {
        SCOPED_TRACE(
            fmt::format("{}, floor {}, updates last {}", strategy->name(), at_floor, updates_last));
        const Case made = spread(three_layers(100, updates_last), *strategy, at_floor);
        expect_only_reordered(made);
        EXPECT_GE(distance(made.prepared, made.after), distance(made.prepared, made.before));
      }
    }
  }
}

TEST(SpreadSums, OfRealModelsToo) {
  models::ModelOptions small{.batch = 4, .channels = 3, .height = 8, .width = 8, .classes = 3};
  for (const char* planner : {"keep_all", "auto"}) {
    graph::TrainingOptions training;
    training.optimizer = graph::SgdAttributes{.momentum = 0.9};
    training.ranks = graph::TrainingOptions::Ranks{};
    const Case made =
        spread(testing::prepare_without_backend(
                   graph::make_training_graph(models::make_model("resnet20", small).graph, training)
                       .graph),
               find_strategy(planner), std::string(planner) == "auto");
    expect_only_reordered(made);
    EXPECT_GT(distance(made.prepared, made.after), distance(made.prepared, made.before));
    const auto before = schedule::cut_buckets(made.prepared, made.before, 1 << 20).size();
    const auto after = schedule::cut_buckets(made.prepared, made.after, 1 << 20).size();
    EXPECT_LE(after, before) << planner;  // fewer waits cut a bucket short
  }
}

TEST(SpreadSums, AScheduleWithoutSumsStaysAsItIs) {
  graph::PreparedGraph prepared = testing::prepare_training(
      "mlp", {.batch = 4, .channels = 1, .height = 4, .width = 4, .classes = 3});
  const Case made = spread(std::move(prepared), find_strategy("keep_all"), false);
  EXPECT_EQ(made.after, made.before);
}

}  // namespace
}  // namespace reprise::planner
