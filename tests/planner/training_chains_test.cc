// Training graphs seen as chains, and what the strategies make of them.

#include <algorithm>
#include <string_view>

#include "gtest/gtest.h"

#include "planner/chain/stage_sizes.h"
#include "planner/chain/stages.h"
#include "tests/planner/prepared_model.h"
#include "tests/planner/random_training.h"

namespace reprise::planner {
namespace {

models::ModelOptions sequence(std::int64_t steps, std::int64_t chunk) {
  models::ModelOptions options;
  options.batch = 8;
  options.hidden = 32;
  options.layers = 1;
  options.vocabulary = 16;
  options.seq_len = steps;
  options.chunk = chunk;
  return options;
}

GraphProblem problem_of(const std::string& model, const models::ModelOptions& options) {
  return make_problem(testing::prepare_training(model, options));
}

Plan plan_of(const Strategy& strategy, const Request& request) {
  const Outcome outcome = strategy.plan(request);
  EXPECT_TRUE(std::holds_alternative<Plan>(outcome)) << strategy.name();
  return std::holds_alternative<Plan>(outcome) ? std::get<Plan>(outcome) : Plan{};
}

// First ops of the chunks: those that cut their tokens out.
std::vector<Index> chunk_starts(const Structure& s) {
  std::vector<Index> starts;
  for (Index i = 0; i < s.turn(); ++i) {
    if (s.op(i).name.ends_with(".tokens")) starts.push_back(i);
  }
  return starts;
}

// The state stored at the end is made by the last chunk, and read after all other backward ops.
TEST(StagedGraph, KeepsBackwardOpsWithTheirStageWhenStateIsStoredAtTheEnd) {
  const GraphProblem graph = problem_of("lstm", sequence(32, 4));
  const Structure s(graph.problem);
  const StagedGraph staged(s, chunk_starts(s), {std::vector<bool>(graph.problem.tensors.size())});
  ASSERT_EQ(staged.stages(), 8);
  // Per chunk: logits, loss, sum of losses; gradients of loss, weight, bias and input of the
  // logits, lstm, embedding. With the first chunk's the mean loss is there. The sum of the last two
  // losses reads the last chunk's, so what leads to it belongs to that stage.
  for (Index i = 0; i + 1 < staged.stages(); ++i) {
    EXPECT_EQ(staged.backward(i).size(), i == 0 ? 10 : i == 6 ? 6 : 9) << i;
  }
  EXPECT_GE(staged.backward(7).size(), 6U);
}

TEST(StageMeter, CountsGradientsOfSharedWeightsAtNoCut) {
  const GraphProblem graph = problem_of("lstm", sequence(32, 4));
  const Structure s(graph.problem);
  const StagedGraph staged(s, chunk_starts(s), {std::vector<bool>(graph.problem.tensors.size())});
  const Stage stage = StageMeter(staged).measure(4);
  // (h, c) of 8 x 32 floats goes on from chunk to chunk, and so do their gradients.
  const Bytes carried = 2 * 8 * 32 * 4;
  EXPECT_EQ(stage.output, carried);
  // The smallest such cut of all is left out with the weights: two gradients of (h, c).
  EXPECT_EQ(stage.output_gradient, 0);
  Bytes weights = 0;
  for (const schedule::Tensor& t : graph.problem.tensors) {
    if (t.kind == schedule::TensorKind::kInput && t.name.find('.') != std::string::npos) {
      weights += t.bytes;
    }
  }
  EXPECT_GT(staged.gradient(4), carried);
  EXPECT_LT(staged.gradient(4), weights + 2 * carried);
}

TEST(Rnn, MakesNoLossTwice) {
  const GraphProblem graph = problem_of("lstm", sequence(64, 4));
  Request request{.problem = &graph.problem, .cache = make_plan_cache()};
  const Strategy& rnn = find_strategy("rnn");
  request.budget = rnn.floor(request);
  std::vector<int> runs(graph.problem.ops.size(), 0);
  for (OpId op : plan_of(rnn, request).order) ++runs[op.index()];
  int most = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string& name = graph.problem.ops[OpId(i)].name;
    if (name.ends_with(".loss") || name.ends_with(".loss_sum")) {
      EXPECT_EQ(runs[i], 1) << name;
    }
    if (name.ends_with(".layer1")) most = std::max(most, runs[i]);
  }
  EXPECT_GE(most, 3);  // while the layer itself runs again and again
}

// A chunk whose record is not kept runs forward once more. So with a share p of what records take,
// about 1 - p of the forward cost comes on top; three points are left for what else takes memory.
TEST(Rnn, RunsOnceMoreWhatDoesNotFitAndNoMore) {
  for (const std::int64_t chunk : {1, 4}) {
    const GraphProblem graph = problem_of("lstm", sequence(256, chunk));
    Request request{.problem = &graph.problem, .cache = make_plan_cache()};
    request.budget = Bytes{1} << 40;
    const Plan all = plan_of(find_strategy("keep_all"), request);
    std::int64_t forward = 0;
    for (const schedule::Op& op : graph.problem.ops) forward += op.backward ? 0 : op.cost;
    Bytes fixed = 0;
    for (const schedule::Tensor& t : graph.problem.tensors) {
      if (t.kind == schedule::TensorKind::kInput) fixed += t.bytes;
    }
    for (const int percent : {80, 50, 30, 20}) {
      request.budget = fixed + (all.arena - fixed) / 100 * percent;
      const Plan plan = plan_of(find_strategy("rnn"), request);
      const double most = static_cast<double>(forward) * (100 - percent) / 100 +
                          0.03 * static_cast<double>(all.cost);
      EXPECT_LE(static_cast<double>(plan.cost - all.cost), most)
          << "chunk " << chunk << ", " << percent << " %";
    }
  }
}

void expect_auto_is_best(const Problem& problem, std::string_view what, Request request) {
  request.problem = &problem;
  request.cache = make_plan_cache();
  request.budget = Bytes{1} << 40;
  const Bytes all = plan_of(find_strategy("keep_all"), request).arena;
  for (int twentieth = 1; twentieth <= 20; ++twentieth) {
    request.budget = all * twentieth / 20;
    if (request.budget == 0) continue;
    const Outcome best = find_strategy("auto").plan(request);
    for (const char* name : {"keep_all", "segments", "sqrt_n", "revolve", "chain", "rnn"}) {
      const Outcome other = find_strategy(name).plan(request);
      if (!std::holds_alternative<Plan>(other)) continue;
      ASSERT_TRUE(std::holds_alternative<Plan>(best)) << what << " " << name << " " << twentieth;
      EXPECT_LE(std::get<Plan>(best).cost, std::get<Plan>(other).cost)
          << what << " " << name << " " << twentieth;
    }
  }
}

TEST(Auto, IsNeverWorseThanTheSimpleStrategiesOnModels) {
  Request request;
  request.search_moves = 1;
  models::ModelOptions images;
  images.batch = 8;
  for (const char* model : {"resnet20", "resnet110", "densenet"}) {
    expect_auto_is_best(problem_of(model, images).problem, model, request);
  }
  for (const std::int64_t chunk : {2, 8}) {
    expect_auto_is_best(problem_of("lstm", sequence(128, chunk)).problem, "lstm", request);
  }
}

TEST(Auto, IsNeverWorseThanTheSimpleStrategiesOnRandomTrainingSteps) {
  Request request;
  request.search_moves = 1;
  request.measure = Measure::kLivePeak;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Problem problem =
        testing::TrainingDrawer(seed).run(4 + static_cast<std::int64_t>(seed % 20));
    expect_auto_is_best(problem, "seed " + std::to_string(seed), request);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace reprise::planner
