#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <string>

#include "graph/graph.h"
#include "graph/names.h"
#include "graph/op.h"

namespace reprise::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<OpKind> all_ops() {
  std::vector<OpKind> ops;
  for (std::size_t i = 0; i < kOpKindCount; ++i) ops.push_back(static_cast<OpKind>(i));
  return ops;
}

Node node_of(OpKind op, std::size_t inputs, std::size_t outputs, bool accumulate = false) {
  Node node;
  node.op = op;
  node.accumulate = accumulate;
  node.inputs.resize(inputs);
  node.outputs.resize(outputs);
  return node;
}

TEST(OpTable, HasOneRowPerOpUnderAUniqueName) {
  std::set<std::string> names;
  for (OpKind op : all_ops()) {
    EXPECT_EQ(op_info(op).kind, op);
    EXPECT_TRUE(is_name(op_info(op).name)) << op_info(op).name;
    EXPECT_TRUE(names.insert(std::string(op_info(op).name)).second) << op_info(op).name;
    EXPECT_EQ(find_op(op_info(op).name), op);
    EXPECT_NE(op_info(op).infer, nullptr) << op_info(op).name;
  }
  EXPECT_EQ(find_op("fused_everything"), std::nullopt);
}

TEST(OpTable, NamesEveryOutput) {
  for (OpKind op : all_ops()) {
    const OpInfo& info = op_info(op);
    const auto outputs = static_cast<std::size_t>(op == OpKind::kSgd ? 2 : info.outputs);
    EXPECT_EQ(info.further_outputs.size() + 1, outputs) << info.name;
    std::set<std::string> names;
    for (std::size_t i = 0; i < outputs; ++i) names.insert(output_name(op, "n", i));
    EXPECT_EQ(names.size(), outputs) << info.name;
  }
  EXPECT_EQ(output_name(OpKind::kBatchNorm, "bn", 0), "bn");
  EXPECT_EQ(output_name(OpKind::kBatchNorm, "bn", 2), "bn.var");
}

TEST(OpTable, PairsAndSumsNameInputsAndOutputsThatExist) {
  for (OpKind op : all_ops()) {
    const OpInfo& info = op_info(op);
    const int outputs = op == OpKind::kSgd ? 2 : info.outputs;
    for (const InplacePair& pair : info.inplace) {
      EXPECT_GE(pair.input, 0);
      EXPECT_LT(pair.output, outputs) << info.name;
      if (info.max_inputs < 0) continue;  // any number
      EXPECT_LT(pair.input, info.max_inputs) << info.name;
    }
    for (int output : info.accumulated) EXPECT_LT(output, outputs) << info.name;
  }
}

TEST(OpTable, OnlyUpdatesAndSumsOverRanksRunOnceAndExactlyTheyWriteInPlaceAlways) {
  for (OpKind op : all_ops()) {
    const OpInfo& info = op_info(op);
    bool forced = false;
    for (const InplacePair& pair : info.inplace) forced = forced || pair.forced;
    EXPECT_EQ(forced, !info.recomputable) << info.name;
    const bool updates = op == OpKind::kSgd || op == OpKind::kAdam || op == OpKind::kAssign ||
                         op == OpKind::kBatchNormUpdate || op == OpKind::kAllReduce ||
                         op == OpKind::kAwait;
    EXPECT_EQ(info.recomputable, !updates) << info.name;
    EXPECT_EQ(info.random, op == OpKind::kDropout || op == OpKind::kDropoutGrad) << info.name;
  }
}

TEST(OpTable, BackwardOpsHaveNoGradientOfTheirOwn) {
  for (OpKind op : all_ops()) {
    if (op_info(op).name.ends_with("_grad")) {
      EXPECT_EQ(op_info(op).gradient, nullptr) << op_info(op).name;
    }
  }
  EXPECT_EQ(op_info(OpKind::kPositive).gradient, nullptr);
  EXPECT_EQ(op_info(OpKind::kCorrectCount).gradient, nullptr);
}

TEST(OpTable, DefaultAttributesAreOfTheRowsKind) {
  for (OpKind op : all_ops()) {
    EXPECT_EQ(default_attributes(op).index(), op_info(op).attributes) << op_info(op).name;
  }
  EXPECT_EQ(default_attributes(OpKind::kConv2dGradWeight), Attributes(Conv2dAttributes{}));
  EXPECT_EQ(default_attributes(OpKind::kRelu), Attributes(NoAttributes{}));
  EXPECT_EQ(default_attributes(OpKind::kAdam), Attributes(AdamAttributes{}));
}

TEST(InplacePairs, LeaveOutWhatTheNodeLacks) {
  // sgd without momentum has two inputs and one output: the pair of the momentum is not there.
  EXPECT_THAT(inplace_pairs(node_of(OpKind::kSgd, 2, 1)), ElementsAre(InplacePair{0, 0, true}));
  EXPECT_THAT(inplace_pairs(node_of(OpKind::kSgd, 3, 2)),
              ElementsAre(InplacePair{0, 0, true}, InplacePair{2, 1, true}));
  EXPECT_THAT(inplace_pairs(node_of(OpKind::kMatmul, 2, 1)), IsEmpty());
}

TEST(InplacePairs, OfAccumulatingNodesEndWithTheSums) {
  // matmul a b acc: input 2 is output 0. With a bias the sum is input 3.
  EXPECT_THAT(inplace_pairs(node_of(OpKind::kMatmul, 3, 1, true)),
              ElementsAre(InplacePair{2, 0, true}));
  EXPECT_THAT(inplace_pairs(node_of(OpKind::kMatmul, 4, 1, true)),
              ElementsAre(InplacePair{3, 0, true}));
  // lstm_grad: 13 inputs, then the sums of dw_ih, dw_hh, dbias = outputs 3, 4, 5.
  EXPECT_THAT(
      inplace_pairs(node_of(OpKind::kLstmGrad, 16, 6, true)),
      ElementsAre(InplacePair{13, 3, true}, InplacePair{14, 4, true}, InplacePair{15, 5, true}));
}

}  // namespace
}  // namespace reprise::graph
