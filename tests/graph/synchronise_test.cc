// Batch norm over ranks: what the pass makes of a graph, and what autodiff makes of that.

#include "graph/synchronise.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "graph/text.h"

namespace reprise::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// x[4,3,2,2] -> conv 3 to 5 -> batch norm -> loss
Graph normalised() {
  Builder b("net");
  const ValueId y =
      b.conv2d(b.input("x", {4, 3, 2, 2}), b.parameter("w", {5, 3, 1, 1}), {}, "conv");
  const ValueId n =
      b.batch_norm(y, b.parameter("gamma", {5}), b.parameter("beta", {5}), b.state("rm", {5}),
                   b.state("rv", {5}), 0.1, {.epsilon = 1e-3}, "bn");
  b.set_loss(b.mean_squared_error(n, b.input("target", {4, 5, 2, 2}), Reduction::kSum, "loss"));
  return b.finish();
}

std::vector<std::string> node_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.name);
  return names;
}

const Node& node_named(const Graph& graph, const std::string& name) {
  return *std::find_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return node.name == name; });
}

Graph trained_over(const Graph& forward, std::int64_t ranks) {
  return make_training_graph(forward, {.ranks = TrainingOptions::Ranks{.batch_norm_over = ranks}})
      .graph;
}

TEST(BatchNormOverRanks, GathersTheMomentsOfAllBeforeItNormalises) {
  const Graph graph = synchronise_batch_norm(normalised(), 3);
  EXPECT_THAT(node_names(graph), ElementsAre("conv", "bn.moments", "bn.reduce", "bn.await",
                                             "bn.combine", "bn", "bn.running", "loss"));
  const Node& combine = node_named(graph, "bn.combine");
  EXPECT_EQ(std::get<CombineAttributes>(combine.attributes).values, 4);  // 2x2 pixels
  EXPECT_EQ(graph.values[combine.inputs[0]].shape, (Shape{3, 2, 5}));
  EXPECT_EQ(std::get<NormAttributes>(node_named(graph, "bn").attributes).epsilon, 1e-3);
}

TEST(BatchNormOverRanks, AllValuesKeepTheirIds) {
  const Graph before = normalised();
  const Graph after = synchronise_batch_norm(before, 2);
  for (std::size_t i = 0; i < before.values.size(); ++i) {
    EXPECT_EQ(after.values[ValueId(i)].name, before.values[ValueId(i)].name);
    EXPECT_EQ(after.values[ValueId(i)].shape, before.values[ValueId(i)].shape);
  }
  EXPECT_EQ(after.values[ValueId(before.values.size())].name, kBatchParts);
}

// How many values a channel has is known at run time only.
TEST(BatchNormOverRanks, RunningVarianceIsMadeFromTheSampleVariance) {
  const Graph graph = synchronise_batch_norm(normalised(), 2);
  const Node& update = node_named(graph, "bn.running");
  EXPECT_EQ(graph.values[update.inputs[3]].name, "bn.sample_var");
  EXPECT_FALSE(std::get<RunningUpdateAttributes>(update.attributes).unbiased);
}

TEST(BatchNormOverRanks, AGraphWithoutBatchNormStaysAsItIs) {
  Builder b("plain");
  b.set_loss(b.reduce_sum(b.mul(b.parameter("w", {4}), b.input("x", {4}))));
  const Graph graph = b.finish();
  EXPECT_EQ(synchronise_batch_norm(graph, 2), graph);
}

// dgamma and dbeta come out of one sum over the ranks; only w has a sum of its own.
TEST(BatchNormOverRanks, TheGradientsOfScaleAndShiftAreSummedOnce) {
  const Graph graph = trained_over(normalised(), 2);
  std::vector<std::string> sums;
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::kAllReduce) sums.push_back(node.name);
  EXPECT_THAT(sums, ElementsAre("bn.reduce", "grad/bn.reduce", "reduce/w"));
  EXPECT_THAT(node_names(graph), IsSupersetOf({"update/w", "update/gamma", "update/beta"}));
}

TEST(BatchNormOverRanks, TheGraphIsReadBackAsItWasPrinted) {
  const Graph graph = trained_over(normalised(), 4);
  EXPECT_EQ(parse_graph(print_graph(graph)), graph);
}

TEST(BatchNormOverRanks, AScaleMadeByANodeIsRefused) {
  Builder b("made");
  const ValueId x = b.input("x", {4, 3});
  const ValueId gamma = b.scale(b.parameter("half", {3}), 2.0, "twice");
  b.set_loss(b.reduce_sum(b.batch_norm(x, gamma, b.parameter("beta", {3}), b.state("rm", {3}),
                                       b.state("rv", {3}), 0.1, {}, "bn")));
  try {
    (void)synchronise_batch_norm(b.finish(), 2);
    FAIL() << "was taken";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("batch_norm 'bn' over ranks: 'twice' is made by a node"));
  }
}

// Part of gamma's gradient would be summed, part would not.
TEST(BatchNormOverRanks, AScaleWithOtherUsesIsRefused) {
  Builder b("shared");
  const ValueId x = b.input("x", {4, 3});
  const ValueId gamma = b.parameter("gamma", {3});
  const ValueId y = b.batch_norm(x, gamma, b.parameter("beta", {3}), b.state("rm", {3}),
                                 b.state("rv", {3}), 0.1, {}, "bn");
  b.set_loss(b.add(b.reduce_sum(y), b.reduce_sum(gamma, {}, false, "penalty")));
  const Graph graph = b.finish();
  try {
    (void)trained_over(graph, 2);
    FAIL() << "was taken";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'gamma' scales a batch norm over ranks"));
    EXPECT_THAT(error.what(), HasSubstr("'penalty'"));
  }
  EXPECT_NO_THROW((void)trained_over(graph, 0));
}

}  // namespace
}  // namespace reprise::graph
