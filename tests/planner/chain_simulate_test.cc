// The table of chain.h, replayed.

#include "gtest/gtest.h"

#include "base/error.h"
#include "chain_cases.h"
#include "planner/chain/simulate.h"

namespace reprise::planner {
namespace {

using S = ChainStep;

// Two stages. x: 3, 4, 5 bytes; records 10 and 12; gradients 2, 3, 4; workspaces 1 (F), 2 (B);
// costs 10 and 20 forward, 30 and 40 backward, loss 1 with 6 bytes.
ChainProblem two_stages() {
  ChainProblem p;
  p.input = 3;
  p.input_gradient = 2;
  p.stages = {{4, 3, 10, 1, {{10, 30, 10, 1, 2}}}, {5, 4, 20, 1, {{20, 40, 12, 1, 2}}}};
  p.loss_cost = 1;
  p.loss_workspace = 6;
  return p;
}

std::string fault(const std::vector<ChainInstruction>& instructions) {
  const ChainReplay r = replay(two_stages(), instructions);
  return r.fault ? r.fault->message : "";
}

TEST(ChainReplay, AddsUpTheTable) {
  const std::vector<ChainInstruction> all = {
      {S::kForwardAll, 0}, {S::kForwardAll, 1}, {S::kLoss}, {S::kBackward, 1}, {S::kBackward, 0}};
  const ChainReplay r = replay(two_stages(), all);
  ASSERT_FALSE(r.fault) << r.fault->message;
  EXPECT_EQ(r.cost, 10 + 20 + 1 + 40 + 30);
  // Fall 0: 3 + 10 + 1 = 14; Fall 1: 13 + 12 + 1 = 26; Loss: 25 + 4 + 6 = 35;
  // B 1: 29 + 3 + 2 = 34; B 0: 3 + 10 + 3 + 2 + 2 = 20.
  EXPECT_EQ(r.peak, 35);
}

TEST(ChainReplay, RunsAgainWhatWasNotRecorded) {
  const std::vector<ChainInstruction> again = {{S::kForwardKeep, 0}, {S::kForwardAll, 1},
                                               {S::kLoss},           {S::kBackward, 1},
                                               {S::kForwardAll, 0},  {S::kBackward, 0}};
  const ChainReplay r = replay(two_stages(), again);
  ASSERT_FALSE(r.fault) << r.fault->message;
  EXPECT_EQ(r.cost, 10 + 20 + 1 + 40 + 10 + 30);
  // x_0 and x_1 are 7; Fall 1: 7 + 12 + 1; Loss: 19 + 4 + 6 = 29; B 1: 23 + 3 + 2 = 28, x_1 goes;
  // Fall 0: 3 + 3 + 10 + 1 = 17.
  EXPECT_EQ(r.peak, 29);
}

TEST(ChainReplay, NamesWhatIsMissing) {
  EXPECT_EQ(fault({{S::kForwardAll, 1}}), "instruction 0, Fall 1: neither x_1 nor xbar_1 is there");
  EXPECT_EQ(fault({{S::kForwardDrop, 0}}), "instruction 0, Fnone 0: x_0 stays until B 0");
  EXPECT_EQ(fault({{S::kForwardAll, 0}, {S::kForwardDrop, 1}}),
            "instruction 1, Fnone 1: x_1 is not there by itself");
  EXPECT_EQ(fault({{S::kLoss}}), "instruction 0, Loss 0: neither x_2 nor xbar_2 is there");
  EXPECT_EQ(fault({{S::kBackward, 1}}), "instruction 0, B 1: y_2 is not there");
  EXPECT_EQ(fault({{S::kForwardAll, 0}, {S::kForwardAll, 0}}),
            "instruction 1, Fall 0: xbar_1 is there already");
  EXPECT_EQ(fault({{S::kForwardAll, 2}}), "instruction 0, Fall 2: there are 2 stages");
  EXPECT_EQ(fault({{S::kForwardAll, 0, 1}}), "instruction 0, Fall 0: option 1 of 1");
  EXPECT_EQ(fault({{S::kDropInput, 0}}), "instruction 0, DropX 0: x_0 stays until B 0");
  EXPECT_EQ(fault({{S::kForwardAll, 0},
                   {S::kForwardAll, 1},
                   {S::kLoss},
                   {S::kDropRecord, 2},
                   {S::kBackward, 1}}),
            "instruction 4, B 1: xbar_2 is not there");
  EXPECT_EQ(fault({{S::kForwardAll, 0}}), "ends after 1 instructions without y_0");
}

TEST(ChainValidate, RefusesByNameAndValue) {
  const auto message = [](const ChainProblem& p) {
    try {
      validate(p);
    } catch (const base::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  ChainProblem p = two_stages();
  EXPECT_EQ(message(p), "");
  p.stages[1].output_gradient = -4;
  EXPECT_EQ(message(p), "chain: output gradient of stage 1 is -4; it must not be negative");
  p = two_stages();
  p.stages[0].options[0].record = 3;
  EXPECT_EQ(message(p),
            "chain: the record of stage 0 takes 3 bytes, less than its output of 4, which is part "
            "of it");
  p = two_stages();
  p.stages[1].options.clear();
  EXPECT_EQ(message(p), "chain: stage 1 has no option");
  p = two_stages();
  p.stages[0].options[0].record = p.stages[1].options[0].record = std::int64_t{1} << 62;
  EXPECT_NE(message(p).find("sum of all sizes"), std::string::npos);
}

TEST(ChainProgram, JoinsNeighbouringStages) {
  ChainProgram program;
  const std::vector<ChainInstruction> list = {
      {S::kForwardKeep, 0}, {S::kForwardDrop, 1}, {S::kForwardDrop, 2}, {S::kForwardAll, 3},
      {S::kLoss},           {S::kBackward, 3},    {S::kForwardAll, 0},  {S::kForwardAll, 1},
      {S::kForwardAll, 2},  {S::kBackward, 2},    {S::kBackward, 1},    {S::kBackward, 0}};
  for (const ChainInstruction& in : list) program.push(in);
  EXPECT_EQ(program.instructions(), list);
  EXPECT_EQ(program.instruction_count(), 12);
  const std::vector<ChainRun> runs = {{S::kForwardKeep, 0, 0, 1}, {S::kForwardDrop, 1, 0, 2},
                                      {S::kForwardAll, 3, 0, 1},  {S::kLoss, 0, 0, 1},
                                      {S::kBackward, 3, 0, 1},    {S::kForwardAll, 0, 0, 3},
                                      {S::kBackward, 2, 0, 3}};
  EXPECT_EQ(program.runs(), runs);
}

}  // namespace
}  // namespace reprise::planner
