// The training graph of one rank among several: a sum over ranks between gradient and update.

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

// x[2,3] -> linear 3 to 4 -> relu -> linear 4 to 2 -> loss
Graph two_layers() {
  Builder b("two");
  const auto x = b.input("x", {2, 3});
  const auto h = b.relu(b.linear(x, b.parameter("w1", {4, 3})));
  b.set_loss(b.softmax_cross_entropy(b.linear(h, b.parameter("w2", {2, 4})),
                                     b.input("labels", {2}, DType::kI32)));
  return b.finish();
}

std::vector<std::string> nodes_with(const Graph& graph, const std::vector<std::string>& prefixes) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    const bool wanted = std::any_of(prefixes.begin(), prefixes.end(),
                                    [&](const auto& each) { return node.name.starts_with(each); });
    if (wanted) names.push_back(node.name);
  }
  return names;
}

Graph over_ranks(const Graph& forward, std::int64_t bytes_under_way) {
  return make_training_graph(forward,
                             {.ranks = TrainingOptions::Ranks{.bytes_under_way = bytes_under_way}})
      .graph;
}

TEST(AutodiffOverRanks, EachGradientIsSummedBeforeItsUpdate) {
  const Graph graph = over_ranks(two_layers(), 0);
  EXPECT_THAT(
      nodes_with(graph, {"reduce/", "await/", "update/"}),
      ElementsAre("reduce/w2", "await/w2", "update/w2", "reduce/w1", "await/w1", "update/w1"));
}

// w2 has 32 bytes, w1 48: both may be under way with 80, and w2 alone with 79.
TEST(AutodiffOverRanks, SumsWaitUntilTooManyBytesAreUnderWay) {
  EXPECT_THAT(nodes_with(over_ranks(two_layers(), 80), {"reduce/", "await/"}),
              ElementsAre("reduce/w2", "reduce/w1", "await/w2", "await/w1"));
  EXPECT_THAT(nodes_with(over_ranks(two_layers(), 47), {"reduce/", "await/"}),
              ElementsAre("reduce/w2", "reduce/w1", "await/w2", "await/w1"));
  // What is computed between start and wait is there to overlap: the backward part of layer 1.
  const auto all = nodes_with(over_ranks(two_layers(), 80), {"reduce/w2", "grad/relu", "await/w2"});
  EXPECT_EQ(all.front(), "reduce/w2");
  EXPECT_EQ(all.back(), "await/w2");
  EXPECT_GE(all.size(), 3u);
}

TEST(AutodiffOverRanks, TheWeightOfTheRankIsAnInput) {
  const Graph graph = over_ranks(two_layers(), 0);
  const auto found = std::find_if(graph.values.begin(), graph.values.end(),
                                  [](const Value& value) { return value.name == kGradientWeight; });
  ASSERT_NE(found, graph.values.end());
  EXPECT_EQ(found->role, Role::kInput);
  EXPECT_TRUE(found->shape.empty());
}

// Both terms of a sum have the sum's own gradient: it must not be overwritten for one of them.
TEST(AutodiffOverRanks, AGradientThatIsSharedIsCopiedFirst) {
  Builder b("shared");
  const auto sum = b.add(b.parameter("a", {4}), b.parameter("c", {4}));
  b.set_loss(b.reduce_sum(b.mul(sum, b.input("x", {4}))));
  const Graph graph = over_ranks(b.finish(), 1000);
  EXPECT_THAT(nodes_with(graph, {"grad/a.own", "grad/c.own"}), ::testing::SizeIs(2));
  EXPECT_NO_THROW(validate(graph));
}

TEST(AutodiffOverRanks, TheGraphIsReadBackAsItWasPrinted) {
  const Graph graph = over_ranks(two_layers(), 0);
  EXPECT_EQ(parse_graph(print_graph(graph)), graph);
}

TEST(AutodiffOverRanks, AnAwaitWithoutItsAllReduceIsRefused) {
  Builder b("alone");
  const auto x = b.relu(b.input("x", {4}));
  EXPECT_THROW((void)b.append(OpKind::kAwait, {x}, NoAttributes{}, "await"), base::Error);
}

}  // namespace
}  // namespace reprise::graph
