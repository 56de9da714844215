// Where updates of parameters go: as soon as their gradient is final, or after all gradients.

#include "gtest/gtest.h"

#include "graph/builder.h"
#include "planner/lowering.h"
#include "schedule/verify.h"
#include "tests/planner/plan_checks.h"
#include "tests/planner/prepared_model.h"

namespace reprise::planner {
namespace {

constexpr int kLayers = 8;
constexpr Bytes kWeight = 64 * 64 * 4;            // one of the eight, and its gradient
constexpr Bytes kRest = 2 * (kLayers + 8) * 256;  // rows of 64 floats, forward and back, and change

// Eight layers of 64 x 64 weights on one row: gradients outweigh activations by far.
graph::PreparedGraph deep(bool updates_last) {
  graph::Builder b("deep");
  auto x = b.input("x", {1, 64});
  for (int i = 0; i < kLayers; ++i) {
    x = b.relu(b.matmul(x, b.parameter(fmt::format("w{}", i), {64, 64}), {}));
  }
  b.set_loss(b.mean_squared_error(x, b.input("target", {1, 64}), graph::Reduction::kMean, "loss"));
  graph::TrainingOptions options;
  options.updates_last = updates_last;
  return testing::prepare_without_backend(graph::make_training_graph(b.finish(), options).graph);
}

Request request_for(const GraphProblem& problem) {
  Request request;
  request.problem = &problem.problem;
  request.budget = Bytes{1} << 50;
  request.search_moves = 5;
  request.cache = make_plan_cache();
  return request;
}

TEST(Updates, AtOnceTheyHoldAboutOneGradientAtTheEndAll) {
  const GraphProblem at_once = make_problem(deep(false));
  const GraphProblem at_end = make_problem(deep(true));
  for (const Strategy* strategy : all_strategies()) {
    SCOPED_TRACE(std::string(strategy->name()));
    const Bytes early = strategy->floor(request_for(at_once));
    EXPECT_GE(early, (kLayers + 1) * kWeight);
    EXPECT_LE(early, (kLayers + 2) * kWeight + kRest);
    const Bytes late = strategy->floor(request_for(at_end));
    EXPECT_GE(late, 2 * kLayers * kWeight);
    EXPECT_LE(late, 2 * kLayers * kWeight + kRest);
  }
}

std::vector<schedule::Rule> broken(const graph::PreparedGraph& prepared,
                                   const schedule::Schedule& schedule) {
  std::vector<schedule::Rule> rules;
  for (const schedule::Violation& v : schedule::verify(prepared, schedule)) rules.push_back(v.rule);
  return rules;
}

TEST(Updates, EveryStrategyKeepsThemBehindAllGradients) {
  const graph::PreparedGraph prepared = deep(true);
  const GraphProblem problem = make_problem(prepared);
  for (const Strategy* strategy : all_strategies()) {
    SCOPED_TRACE(std::string(strategy->name()));
    Request request = request_for(problem);
    const Bytes floor = strategy->floor(request);
    for (const Bytes budget : {floor, floor + kRest, Bytes{1} << 40}) {
      request.budget = budget;
      const schedule::Schedule lowered =
          lower(prepared, problem, std::get<Plan>(strategy->plan(request)));
      EXPECT_TRUE(broken(prepared, lowered).empty());
      // One instruction for each node, none for what the updates wait for.
      EXPECT_GE(lowered.instructions.size(), prepared.graph.nodes.size());
    }
  }
}

TEST(Updates, TheVerifierFindsOneThatComesEarly) {
  const graph::PreparedGraph at_once = deep(false);
  const GraphProblem problem = make_problem(at_once);
  const auto plan = std::get<Plan>(find_strategy("keep_all").plan(request_for(problem)));
  const schedule::Schedule schedule = lower(at_once, problem, plan);
  EXPECT_TRUE(broken(at_once, schedule).empty());
  graph::PreparedGraph wants_them_last = at_once;
  wants_them_last.graph.updates_last = true;
  // Seven gradients are not there yet when the last layer's weight changes.
  EXPECT_EQ(broken(wants_them_last, schedule),
            std::vector<schedule::Rule>(kLayers - 1, schedule::Rule::kUpdateEarly));
}

TEST(Updates, AForwardGraphHasNoneToWaitFor) {
  graph::Builder b("forward");
  b.add_output(b.relu(b.input("x", {1, 64})));
  graph::Graph graph = b.finish();
  graph.updates_last = true;
  const GraphProblem problem = make_problem(testing::prepare_without_backend(graph));
  EXPECT_EQ(problem.problem.ops.size(), 1u);
}

}  // namespace
}  // namespace reprise::planner
