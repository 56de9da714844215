// Training graphs whose updates wait for the norm of all gradients.

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "graph/text.h"

namespace reprise::graph {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// x[2,3] -> linear 3 to 4 -> batch norm -> linear 4 to 2 -> loss, with a carried sum.
Graph small(bool trainable = true) {
  Builder b("small");
  const auto x = b.input("x", {2, 3});
  const auto h = b.linear(x, b.parameter("w1", {4, 3}, trainable), "fc1");
  const auto n =
      b.batch_norm(h, b.parameter("gamma", {4}, trainable), b.parameter("beta", {4}, trainable),
                   b.state("mean", {4}), b.state("var", {4}), 0.1, {}, "bn");
  b.assign(b.state("carried", {}), b.reduce_sum(x, {}, false, "sum"));
  b.set_loss(b.softmax_cross_entropy(b.linear(n, b.parameter("w2", {2, 4}, trainable), "fc2"),
                                     b.input("labels", {2}, DType::kI32), {}, "loss"));
  return b.finish();
}

std::vector<std::string> nodes_from(const Graph& graph, std::string_view first) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (!names.empty() || node.name == first) names.push_back(node.name);
  }
  return names;
}

std::vector<std::string> read_by(const Graph& graph, std::string_view name) {
  for (const Node& node : graph.nodes) {
    if (node.name != name) continue;
    std::vector<std::string> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(graph.values[input].name);
    return inputs;
  }
  return {};
}

TEST(AutodiffWithNorm, UpdatesComeAfterTheNormOfAllGradients) {
  const Graph graph =
      make_training_graph(small(), {.optimizer = SgdAttributes{.momentum = 0.9, .clip_norm = 1}})
          .graph;
  EXPECT_THAT(nodes_from(graph, "grad_norm"),
              ElementsAre("grad_norm", "update/w2", "update/gamma", "update/beta", "update/w1",
                          "carried.next"));
  EXPECT_EQ(read_by(graph, "grad_norm").size(), 4U);
  EXPECT_THAT(read_by(graph, "update/w1"),
              ElementsAre("w1", ::testing::_, "w1.momentum", "grad_norm"));
  // Clipping alone leaves statistics and carried state to themselves.
  EXPECT_THAT(read_by(graph, "bn.running"), ElementsAre("mean", "var", "bn.mean", "bn.var"));
  EXPECT_THAT(read_by(graph, "carried.next"), ElementsAre("carried", "sum"));
  std::vector<std::string> outputs;
  for (const ValueId output : graph.outputs) outputs.push_back(graph.values[output].name);
  EXPECT_THAT(outputs, Contains("grad_norm"));
}

TEST(AutodiffWithNorm, WhatSkipsMakesAllUpdatesReadTheNorm) {
  const Graph graph =
      make_training_graph(small(), {.optimizer = AdamAttributes{.skip_nonfinite = true}}).graph;
  EXPECT_THAT(nodes_from(graph, "grad_norm"),
              ElementsAre("grad_norm", "update/w2", "update/gamma", "update/beta", "update/w1",
                          "bn.running", "carried.next"));
  EXPECT_THAT(read_by(graph, "bn.running"),
              ElementsAre("mean", "var", "bn.mean", "bn.var", "grad_norm"));
  EXPECT_THAT(read_by(graph, "carried.next"), ElementsAre("carried", "sum", "grad_norm"));
  EXPECT_EQ(graph.updates.size(), 4U * 3U + 2U + 1U);  // four with m and v, two statistics, a sum
}

TEST(AutodiffWithNorm, OverRanksTheNormIsThatOfTheSums) {
  const Graph graph = make_training_graph(small(), {.optimizer = SgdAttributes{.clip_norm = 1},
                                                    .ranks = TrainingOptions::Ranks{}})
                          .graph;
  EXPECT_THAT(read_by(graph, "grad_norm"),
              ElementsAre("await/w2", "await/gamma", "await/beta", "await/w1"));
}

TEST(AutodiffWithNorm, FetchedGradientsKeepTheirNamesWhereStatisticsMove) {
  const Graph forward = small();
  const auto found = std::find_if(forward.values.begin(), forward.values.end(),
                                  [](const Value& value) { return value.name == "fc2"; });
  const Graph graph =
      make_training_graph(
          forward,
          {.optimizer = SgdAttributes{.skip_nonfinite = true},
           .fetch_gradients = {ValueId(static_cast<std::size_t>(found - forward.values.begin()))}})
          .graph;
  const auto is_fetched = [&](ValueId output) {
    return graph.values[output].name == "grad/fc2" && graph.values[output].shape == Shape{2, 2};
  };
  EXPECT_TRUE(std::any_of(graph.outputs.begin(), graph.outputs.end(), is_fetched));
}

TEST(AutodiffWithNorm, WithoutGradientsThereIsNoNormAndNothingSkips) {
  const Graph graph =
      make_training_graph(small(false), {.optimizer = SgdAttributes{.skip_nonfinite = true}}).graph;
  EXPECT_TRUE(read_by(graph, "grad_norm").empty());
  EXPECT_THAT(read_by(graph, "bn.running"), ElementsAre("mean", "var", "bn.mean", "bn.var"));
}

TEST(AutodiffWithNorm, TheGraphIsReadBackAsItWasPrinted) {
  for (const bool clips : {true, false}) {
    SgdAttributes sgd{.skip_nonfinite = !clips};
    if (clips) sgd.clip_norm = 0.25;
    const Graph graph = make_training_graph(small(), {.optimizer = sgd}).graph;
    EXPECT_EQ(parse_graph(print_graph(graph)), graph);
  }
}

std::string refusal(OpKind op, std::vector<Shape> shapes, const Attributes& attributes) {
  Builder b("refused");
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    inputs.push_back(b.input(fmt::format("x{}", i), shapes[i]));
  try {
    (void)b.append(op, inputs, attributes, "node");
  } catch (const base::Error& error) {
    return error.what();
  }
  return "";
}

TEST(AutodiffWithNorm, AnUpdateThatTakesANormWantsIt) {
  const Shape w{3};
  const SgdAttributes clips{.clip_norm = 1};
  EXPECT_EQ(refusal(OpKind::kSgd, {w, w, {}}, clips), "");
  EXPECT_THAT(refusal(OpKind::kSgd, {w, w}, clips), HasSubstr("norm must have shape []"));
  EXPECT_THAT(refusal(OpKind::kSgd, {w, w, w, w}, SgdAttributes{}), HasSubstr("got 4 inputs"));
  EXPECT_THAT(refusal(OpKind::kAdam, {w, w, w, w}, AdamAttributes{.skip_nonfinite = true}),
              HasSubstr("norm must have shape []"));
  EXPECT_THAT(refusal(OpKind::kAdam, {w, w, w, w, {}}, AdamAttributes{}),
              HasSubstr("takes a parameter, a gradient, m and v, got 5 inputs"));
  EXPECT_THAT(refusal(OpKind::kSgd, {w, w}, SgdAttributes{.clip_norm = -1}),
              HasSubstr("clip_norm must be at least 0, got -1"));
  EXPECT_THAT(refusal(OpKind::kAssign, {w, w, w}, NoAttributes{}),
              HasSubstr("norm must have shape []"));
  EXPECT_THAT(
      refusal(OpKind::kBatchNormUpdate, {w, w, w, w, w}, RunningUpdateAttributes{.count = 2}),
      HasSubstr("a mean and a variance of each batch"));
}

}  // namespace
}  // namespace reprise::graph
