#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "graph/autodiff.h"
#include "models/model.h"

namespace reprise::models {
namespace {

using graph::Graph;
using graph::Node;
using graph::OpKind;

std::vector<std::int64_t> chunk_lengths(const Graph& graph) {
  std::vector<std::int64_t> lengths;
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::kLstm) lengths.push_back(graph.values[node.inputs[0]].shape[0]);
  }
  return lengths;
}

Graph lstm(std::int64_t seq_len, std::int64_t chunk, bool stateful = true) {
  return make_model("lstm", {.batch = 2,
                             .hidden = 4,
                             .vocabulary = 5,
                             .seq_len = seq_len,
                             .chunk = chunk,
                             .stateful = stateful})
      .graph;
}

TEST(LanguageModels, CutTheSequenceIntoChunksWithAShorterLastOne) {
  EXPECT_EQ(chunk_lengths(lstm(7, 3)), (std::vector<std::int64_t>{3, 3, 1}));
  EXPECT_EQ(chunk_lengths(lstm(6, 3)), (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(chunk_lengths(lstm(3, 10)), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(chunk_lengths(lstm(1, 1)), (std::vector<std::int64_t>{1}));
}

// What chunk 1 reads of chunk 0: h and c of each of two layers, and the running sum of the losses.
// Of one chunk, what nodes of the other read.
std::set<std::string> read_by(const Graph& graph, std::string_view reader, std::string_view maker) {
  std::set<std::string> crossing;
  for (const Node& node : graph.nodes) {
    if (!node.name.starts_with(reader)) continue;
    for (graph::ValueId input : node.inputs) {
      const graph::Value& value = graph.values[input];
      if (value.name.starts_with(maker)) crossing.insert(value.name);
    }
  }
  return crossing;
}

// Losses are added up from the last chunk to the first, in training as in evaluation.
TEST(LanguageModels, NothingButTheCarriedStateAndLossesCrossChunks) {
  for (const bool training : {true, false}) {
    models::ModelOptions options{.batch = 2, .hidden = 4, .layers = 2, .seq_len = 4, .chunk = 2};
    options.training = training;
    const Graph graph = make_model("lstm", options).graph;
    EXPECT_EQ(read_by(graph, "chunk0.", "chunk1."), (std::set<std::string>{"chunk1.loss"}));
    std::set<std::string> carried = {"chunk0.layer1.h_n", "chunk0.layer1.c_n", "chunk0.layer2.h_n",
                                     "chunk0.layer2.c_n"};
    if (!training) carried.insert("chunk0.correct");
    EXPECT_EQ(read_by(graph, "chunk1.", "chunk0."), carried);
  }
}

TEST(LanguageModels, StatefulOnesAssignTheirLastStateAfterTheBackwardPart) {
  const Graph training = graph::make_training_graph(lstm(7, 3), {}).graph;
  const auto& nodes = training.nodes.items();
  ASSERT_GE(nodes.size(), 2U);
  for (std::size_t i = nodes.size() - 2; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i].op, OpKind::kAssign);
    EXPECT_TRUE(training.values[nodes[i].inputs[1]].name.starts_with("chunk2.layer1"));
  }
}

TEST(LanguageModels, StatelessOnesStartFromZerosAndHaveNoState) {
  const Graph graph = lstm(7, 3, false);
  for (const graph::Value& value : graph.values) EXPECT_NE(value.role, graph::Role::kState);
  const auto fills = std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                   [](const Node& node) { return node.op == OpKind::kFill; });
  EXPECT_EQ(fills, 2);  // h and c
}

}  // namespace
}  // namespace reprise::models
