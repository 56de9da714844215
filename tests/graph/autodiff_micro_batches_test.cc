// Training graphs of several micro-batches: copies of the forward graph, each with its backward
// part, that share parameters.

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
using ::testing::StartsWith;

// x[2,3] -> linear 3 to 4 -> batch norm -> dropout -> loss, with a carried [2,4].
Graph small() {
  Builder b("small");
  const auto x = b.input("x", {2, 3});
  const auto h = b.linear(x, b.parameter("w", {4, 3}), "fc");
  const auto n = b.batch_norm(h, b.parameter("gamma", {4}), b.parameter("beta", {4}),
                              b.state("mean", {4}), b.state("var", {4}), 0.1, {}, "bn");
  const auto carried = b.state("carried", {2, 4});
  const auto y = b.dropout(b.add(n, carried, "sum"), 0.5, "drop");
  b.assign(carried, n);
  b.set_loss(b.softmax_cross_entropy(y, b.input("labels", {2}, DType::kI32), {}, "loss"));
  return b.finish();
}

Graph training(std::int64_t micro_batches, TrainingOptions options = {}) {
  options.micro_batches = micro_batches;
  return make_training_graph(small(), options).graph;
}

std::vector<std::string> nodes_with(const Graph& graph, const std::vector<std::string>& prefixes) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (std::any_of(prefixes.begin(), prefixes.end(),
                    [&](const auto& each) { return node.name.starts_with(each); })) {
      names.push_back(node.name);
    }
  }
  return names;
}

const Node& node(const Graph& graph, std::string_view name) {
  return *std::find_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& each) { return each.name == name; });
}

std::vector<std::string> read_by(const Graph& graph, std::string_view name) {
  std::vector<std::string> inputs;
  for (const ValueId input : node(graph, name).inputs) inputs.push_back(graph.values[input].name);
  return inputs;
}

const Value& value(const Graph& graph, std::string_view name) {
  return *std::find_if(graph.values.begin(), graph.values.end(),
                       [&](const Value& each) { return each.name == name; });
}

TEST(AutodiffOfMicroBatches, OneIsTheGraphAsItAlwaysWas) {
  EXPECT_EQ(training(1), make_training_graph(small(), {}).graph);
}

TEST(AutodiffOfMicroBatches, EachBackwardPartFollowsItsForwardPart) {
  const Graph graph = training(3);
  EXPECT_THAT(
      nodes_with(graph, {"loss", "micro1/loss", "micro2/loss", "grad/loss.", "grad/micro1/loss.",
                         "grad/micro2/loss."}),
      ElementsAre("loss", StartsWith("grad/loss."), "micro1/loss", StartsWith("grad/micro1/loss."),
                  "micro2/loss", StartsWith("grad/micro2/loss.")));
  EXPECT_NO_THROW(validate(graph));
}

TEST(AutodiffOfMicroBatches, GradientsAddUpInPlaceAndAreUsedOnceAfterTheLast) {
  const Graph graph = training(3);
  EXPECT_THAT(nodes_with(graph, {"update/"}),
              ElementsAre("update/gamma", "update/beta", "update/w"));
  EXPECT_THAT(read_by(graph, "update/w"), ElementsAre("w", "grad/micro2/fc.db"));
  EXPECT_FALSE(node(graph, "grad/fc.db").accumulate);
  EXPECT_TRUE(node(graph, "grad/micro1/fc.db").accumulate);
  EXPECT_TRUE(node(graph, "grad/micro2/fc.db").accumulate);
  const auto first_update = nodes_with(graph, {"update/gamma", "micro2/loss"});
  EXPECT_EQ(first_update.back(), "update/gamma");
}

TEST(AutodiffOfMicroBatches, OverRanksEachGradientIsReducedOnce) {
  const Graph graph = training(3, {.ranks = TrainingOptions::Ranks{}});
  EXPECT_THAT(nodes_with(graph, {"reduce/"}),
              ElementsAre("reduce/gamma", "reduce/beta", "reduce/w"));
}

TEST(AutodiffOfMicroBatches, InputsAndWeightsBelongToACopy) {
  const Graph graph = training(2);
  for (const char* name :
       {"x", "labels", "gradient_weight", "micro1/x", "micro1/labels", "micro1/gradient_weight"}) {
    EXPECT_EQ(value(graph, name).role, Role::kInput) << name;
  }
  EXPECT_EQ(graph.values[graph.loss].name, "micro1/sum_of_losses");
  EXPECT_THAT(read_by(graph, "micro1/sum_of_losses"),
              ElementsAre("weighted_loss", "micro1/weighted_loss"));
}

TEST(AutodiffOfMicroBatches, RunningStatisticsTakeUpAllBatchesInOneNode) {
  const Graph graph = training(2);
  EXPECT_THAT(read_by(graph, "bn.running"),
              ElementsAre("mean", "var", "bn.mean", "bn.var", "micro1/bn.mean", "micro1/bn.var"));
}

TEST(AutodiffOfMicroBatches, CarriedStateHasTheRowsOfAllCopies) {
  const Graph graph = training(2);
  EXPECT_EQ(value(graph, "carried").shape, (Shape{4, 4}));
  EXPECT_THAT(read_by(graph, "micro1/sum"), ElementsAre("micro1/bn", "micro1/carried.part"));
  EXPECT_EQ(std::get<AxisAttributes>(node(graph, "micro1/carried.part").attributes).begin, 2);
  EXPECT_THAT(read_by(graph, "carried.next"), ElementsAre("carried", "carried.next.rows"));
  EXPECT_THAT(read_by(graph, "carried.next.rows"), ElementsAre("bn", "micro1/bn"));
}

TEST(AutodiffOfMicroBatches, MasksDifferFromCopyToCopy) {
  const Graph graph = training(2);
  const auto stream = [&](std::string_view name) {
    return std::get<DropoutAttributes>(node(graph, name).attributes).stream;
  };
  EXPECT_NE(stream("drop"), stream("micro1/drop"));
}

TEST(AutodiffOfMicroBatches, TheGraphIsReadBackAsItWasPrinted) {
  const Graph graph = training(2, {.optimizer = AdamAttributes{.skip_nonfinite = true}});
  EXPECT_EQ(parse_graph(print_graph(graph)), graph);
}

std::string refusal(const Graph& forward, const TrainingOptions& options) {
  try {
    (void)make_training_graph(forward, options);
  } catch (const base::Error& error) {
    return error.what();
  }
  return "";
}

TEST(AutodiffOfMicroBatches, WhatHasNoMeaningIsRefused) {
  EXPECT_THAT(refusal(small(), {.micro_batches = 0}), HasSubstr("micro_batches 0"));
  const Graph forward = small();
  for (std::size_t i = 0; i < forward.values.size(); ++i) {
    if (forward.values[ValueId(i)].name != "bn") continue;
    EXPECT_THAT(refusal(forward, {.fetch_gradients = {ValueId(i)}, .micro_batches = 2}),
                HasSubstr("only gradients of parameters"));
  }
  Builder b("scalar");
  const auto total = b.state("total", {});
  const auto x = b.reduce_sum(b.mul(b.input("x", {2}), b.parameter("w", {2})));
  b.assign(total, x);
  b.set_loss(x);
  EXPECT_THAT(refusal(b.finish(), {.micro_batches = 2}), HasSubstr("'total' has no axis"));
}

}  // namespace
}  // namespace reprise::graph
