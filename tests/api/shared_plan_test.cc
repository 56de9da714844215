// Sessions of one process that plan the same step: one of them does.

#include "api/shared_plan.h"

#include <array>
#include <gtest/gtest.h>
#include <thread>

#include "tests/api/training_case.h"

namespace reprise::api {
namespace {

graph::PreparedGraph mlp(std::int64_t batch) {
  const models::Model model = models::make_model("mlp", {.batch = batch, .hidden = 8, .layers = 2});
  const graph::TrainingGraph training =
      graph::make_training_graph(model.graph, {.optimizer = graph::SgdAttributes{}});
  return kernels::make_reference_backend()->prepare(training.graph)->prepared();
}

PlannedTraining planned(std::variant<PlannedTraining, planner::Infeasible> outcome) {
  return std::get<PlannedTraining>(std::move(outcome));
}

// A plan states how long it took to find, in fractions of microseconds: no two searches agree on
// it.
TEST(SharedPlan, IsMadeOnceForAllThreads) {
  const graph::PreparedGraph graph = mlp(4);
  const PlanOptions options = on("reference").plan;
  SharedPlan shared;
  std::array<PlannedTraining, 4> plans;
  std::vector<std::thread> threads;
  for (PlannedTraining& plan : plans) {
    threads.emplace_back([&] { plan = planned(shared.plan(graph, options, {})); });
  }
  for (std::thread& thread : threads) thread.join();
  const PlannedTraining alone = planned(plan_step(graph, options));
  for (const PlannedTraining& plan : plans) {
    EXPECT_EQ(plan.report.plan_ms, plans[0].report.plan_ms);
    EXPECT_NE(plan.report.plan_ms, alone.report.plan_ms);
    EXPECT_EQ(plan.step.schedule, alone.step.schedule);
  }
}

TEST(SharedPlan, IsNotForAnotherGraph) {
  const PlanOptions options = on("reference").plan;
  SharedPlan shared;
  const auto first = planned(shared.plan(mlp(4), options, {}));
  const auto second = planned(shared.plan(mlp(8), options, {}));
  EXPECT_EQ(second.step.schedule, planned(plan_step(mlp(8), options)).step.schedule);
  EXPECT_EQ(planned(shared.plan(mlp(4), options, {})).report.plan_ms, first.report.plan_ms);
}

TEST(SharedPlan, SharesThatThereIsNone) {
  const PlanOptions options = on("reference", "auto", bytes_budget(1)).plan;
  SharedPlan shared;
  const auto first = std::get<planner::Infeasible>(shared.plan(mlp(4), options, {}));
  EXPECT_EQ(std::get<planner::Infeasible>(shared.plan(mlp(4), options, {})).floor, first.floor);
}

TEST(SharedPlan, IsTriedAgainByTheNextWhereItThrew) {
  SharedPlan shared;
  EXPECT_THROW(static_cast<void>(shared.plan(mlp(4), on("reference", "none such").plan, {})),
               base::Error);
  EXPECT_GT(planned(shared.plan(mlp(4), on("reference").plan, {})).report.peak_bytes, 0);
}

}  // namespace
}  // namespace reprise::api
