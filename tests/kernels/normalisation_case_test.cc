// Batch norm where other systems went wrong: statistics advanced twice, the variance convention,
// one value per channel.

#include <gmock/gmock.h>

#include "base/error.h"
#include "graph/builder.h"
#include "tests/kernels/on_backend.h"

namespace reprise::test {
namespace {

using graph::Builder;
using graph::Graph;

class NormalisationCase : public OnBackend {};

// loss = sum(BN(x)), running mean 0, running variance 1, update rate 0.1.
struct BatchNormGraph {
  Graph graph;
  std::vector<float> x;
  std::int64_t channels;
};

BatchNormGraph batch_norm_graph(Shape shape, std::vector<float> x) {
  Builder b("bn");
  const std::int64_t c = shape[1];
  const ValueId y =
      b.batch_norm(b.input("x", shape), b.parameter("scale", {c}), b.parameter("shift", {c}),
                   b.state("running_mean", {c}), b.state("running_var", {c}), 0.1, {}, "bn");
  b.add_output(y);
  b.set_loss(b.reduce_sum(y, {}, false, "loss"));
  return {graph::make_training_graph(b.finish(), {}).graph, std::move(x), c};
}

void fill(Interpreter& run, const BatchNormGraph& g) {
  const auto c = static_cast<std::size_t>(g.channels);
  run.set("x", g.x);
  run.set("scale", std::vector<float>(c, 1));
  run.set("shift", std::vector<float>(c, 0));
  run.set("running_mean", std::vector<float>(c, 0));
  run.set("running_var", std::vector<float>(c, 1));
}

// x = [[1,0],[2,0],[3,4],[4,4]]: means 2.5 and 2, sample variances 5/3 and 16/3.
//   mean 0.9 * 0 + 0.1 * [2.5, 2], var 0.9 * 1 + 0.1 * [5/3, 16/3]
TEST_P(NormalisationCase, RunningStatisticsAdvanceOnceWhenTheForwardPartRunsAgain) {
  const BatchNormGraph g = batch_norm_graph({4, 2}, {1, 0, 2, 0, 3, 4, 4, 4});
  std::vector<std::vector<std::byte>> first;
  for (const InterpreterOptions& options : run_options()) {
    Interpreter run = prepare(g.graph, options);
    fill(run, g);
    run.step();
    expect_near(run.get("running_mean"), {0.25, 0.20});
    expect_near(run.get("running_var"), {1.0666667, 1.4333333});
    std::vector<std::vector<std::byte>> state;
    for (const char* name : {"running_mean", "running_var", "scale", "shift"}) {
      const auto bytes = run.stored(name);
      state.emplace_back(bytes.begin(), bytes.end());
    }
    if (first.empty()) first = state;
    EXPECT_EQ(state, first);
    // The statistics node itself runs once, whatever runs again around it.
    for (std::size_t i = 0; i < run.runs().size(); ++i) {
      if (run.prepared().graph.nodes[NodeId(i)].op == graph::OpKind::kBatchNormUpdate) {
        EXPECT_EQ(run.runs()[NodeId(i)], 1);
      }
    }
  }
}

// x = [2,4,6,8]: population variance 5, sample variance 20/3. Reprise keeps the sample one:
//   0.9 * 1 + 0.1 * 20/3 = 1.566667
TEST_P(NormalisationCase, TheRunningVarianceIsTheSampleVariance) {
  const BatchNormGraph g = batch_norm_graph({4, 1, 1, 1}, {2, 4, 6, 8});
  Interpreter run = prepare(g.graph);
  fill(run, g);
  run.step();
  expect_near(run.get("running_mean"), {0.5});
  expect_near(run.get("running_var"), {1.5666667});
  // The normalisation itself divides by the population variance: (2 - 5) / sqrt(5 + 1e-5).
  expect_near(run.get("bn"), {-1.3416394, -0.4472131, 0.4472131, 1.3416394});
}

// The ONNX operator asks for the population variance: 0.9 * 1 + 0.1 * 5 = 1.4.
TEST_P(NormalisationCase, TheRunningVarianceIsThePopulationVarianceWhereAGraphAsksForIt) {
  Builder b("bn");
  const ValueId mean = b.state("running_mean", {1});
  const ValueId var = b.state("running_var", {1});
  const auto y =
      b.append(graph::OpKind::kBatchNorm,
               {b.input("x", {4, 1, 1, 1}), b.parameter("scale", {1}), b.parameter("shift", {1})},
               graph::NormAttributes{}, "bn");
  const auto next =
      b.append(graph::OpKind::kBatchNormUpdate, {mean, var, y[1], y[2]},
               graph::RunningUpdateAttributes{.rate = 0.1, .count = 4, .unbiased = false}, "next");
  b.add_update(mean, next[0]);
  b.add_update(var, next[1]);
  b.add_output(y[0]);
  const BatchNormGraph g{b.finish(), {2, 4, 6, 8}, 1};
  Interpreter run = prepare(g.graph);
  fill(run, g);
  run.step();
  expect_near(run.get("running_var"), {1.4});
}

// One image of 1x4 pixels: mean 2.5, population variance 1.25, sample variance 5/3.
TEST_P(NormalisationCase, OneImageOfSeveralPixelsTrains) {
  const BatchNormGraph g = batch_norm_graph({1, 1, 1, 4}, {1, 2, 3, 4});
  Interpreter run = prepare(g.graph);
  fill(run, g);
  run.step();
  expect_near(run.get("running_mean"), {0.25});
  expect_near(run.get("running_var"), {1.0666667});
  expect_near(run.get("bn"), {-1.3416354, -0.4472118, 0.4472118, 1.3416354});
}

// (3 - 1) / sqrt(4 + 1e-5) * 2 + 0.5 = 2.4999975
TEST_P(NormalisationCase, OneValuePerChannelIsFineInEvaluation) {
  Builder b("bn");
  b.add_output(b.batch_norm_inference(b.input("x", {1, 1, 1, 1}), b.parameter("scale", {1}),
                                      b.parameter("shift", {1}), b.state("running_mean", {1}),
                                      b.state("running_var", {1}), {}, "y"));
  Interpreter run = prepare(b.finish());
  run.set<float>("x", {3});
  run.set<float>("scale", {2});
  run.set<float>("shift", {0.5});
  run.set<float>("running_mean", {1});
  run.set<float>("running_var", {4});
  run.step();
  expect_near(run.get("y"), {2.4999975});
}

REPRISE_ON_EVERY_BACKEND(NormalisationCase);

TEST(NormalisationRule, OneValuePerChannelIsRefusedByLayerAndShapeBeforeAnythingRuns) {
  try {
    (void)batch_norm_graph({1, 1, 1, 1}, {1});
    FAIL() << "expected an error";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInput);
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("'bn'"), testing::HasSubstr("[1,1,1,1]")));
  }
}

}  // namespace
}  // namespace reprise::test
