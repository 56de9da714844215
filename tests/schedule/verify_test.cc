#include "schedule/verify.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/schedule/small_graph.h"

namespace reprise::schedule {
namespace {

using ::testing::Contains;
using testing::GraphMaker;
using ::testing::HasSubstr;
using testing::TestLowering;
using testing::TinyStep;

// A correct schedule of the tiny step in which h and y are computed twice:
//   0 h   1 y   2 loss   3 h   4 y   5 gy   6 gh   7 gw   8 w.next
class Verify : public ::testing::Test {
 protected:
  Verify() : step_(testing::tiny_step()) {
    // Nobody works in place but the update: then every value has a place of its own.
    for (std::size_t i = 0; i + 1 < step_.prepared.nodes.size(); ++i) {
      step_.prepared.nodes[NodeId(i)].inplace.clear();
    }
    step_.nodes = nodes({"h", "y", "loss", "h", "y", "gy", "gh", "gw", "w.next"});
    const TestLowering lowering(step_.prepared);
    schedule_ = lowering.lower(lowering.order(step_.nodes));
  }

  std::vector<NodeId> nodes(const std::vector<std::string>& names) const {
    std::vector<NodeId> found;
    for (const std::string& name : names) {
      for (std::size_t i = 0; i < step_.prepared.graph.nodes.size(); ++i) {
        if (step_.prepared.graph.nodes[NodeId(i)].name == name) found.emplace_back(i);
      }
    }
    return found;
  }

  // The `which`-th slot of the value of that name.
  SlotId slot_id(const std::string& name, int which = 0) const {
    for (std::size_t i = 0; i < schedule_.slots.size(); ++i) {
      const ValueId value = schedule_.slots[SlotId(i)].value;
      if (step_.prepared.graph.values[value].name == name && which-- == 0) return SlotId(i);
    }
    ADD_FAILURE() << "no slot for " << name;
    return SlotId(0);
  }
  Slot& slot(const std::string& name, int which = 0) {
    return schedule_.slots[slot_id(name, which)];
  }
  ValueId value(const std::string& name) const { return schedule_.slots[slot_id(name)].value; }
  Instruction& at(std::size_t step) { return schedule_.instructions[step]; }

  std::vector<std::string> broken_rules() const {
    std::vector<std::string> rules;
    for (const Violation& violation : verify(step_.prepared, schedule_, 1000)) {
      rules.emplace_back(rule_name(violation.rule));
    }
    return rules;
  }
  // The messages of one rule, one a line; "" when it is kept.
  std::string message(Rule rule) const {
    std::string text;
    for (const Violation& violation : verify(step_.prepared, schedule_, 1000)) {
      if (violation.rule == rule) text += violation.message + "\n";
    }
    return text;
  }

  // Moves a slot to bytes of its own at the end of the arena.
  void move_to_end(SlotId slot) {
    schedule_.slots[slot].offset = schedule_.arena_bytes;
    schedule_.arena_bytes += base::align_up(schedule_.slots[slot].bytes, graph::kArenaAlignment);
  }
  SlotId add_slot(const std::string& name) {
    const ValueId held = value(name);
    const SlotId id = schedule_.slots.push_back({held, 0, step_.prepared.value_bytes[held]});
    move_to_end(id);
    return id;
  }

  TinyStep step_;
  Schedule schedule_;
};

TEST_F(Verify, AcceptsACorrectSchedule) {
  EXPECT_THAT(broken_rules(), ::testing::IsEmpty());
  EXPECT_EQ(schedule_.instructions.size(), 9u);
  EXPECT_EQ(schedule_.entry.size(), 4u);  // x, w, frozen, unread
  EXPECT_EQ(schedule_.exit.size(), 4u);   // loss, w.next, frozen, unread
}

TEST_F(Verify, AcceptsOtherValuesOnTheBytesOfADeadBatchInput) {
  // x is read for the last time at step 7; y, run again after it, may lie there, but not before.
  move_to_end(slot_id("h", 1));
  const SlotId third_y = schedule_.slots.push_back({value("y"), slot("x").offset, 64});
  const Instruction run_y{at(4).node, {slot_id("h", 1)}, {third_y}, 0, 0};
  schedule_.instructions.insert(schedule_.instructions.begin() + 8, run_y);
  EXPECT_THAT(broken_rules(), ::testing::IsEmpty());
  std::swap(at(7), at(8));
  EXPECT_THAT(broken_rules(), ::testing::ElementsAre("overlap", "stale_read"));
}

TEST_F(Verify, NamesUnknownIds) {
  at(2).reads[0] = SlotId(99);
  EXPECT_EQ(message(Rule::kUnknownId),
            fmt::format("step 2 'loss': reads slot 99; the schedule has {} slots\n",
                        schedule_.slots.size()));
  at(2).node = NodeId(55);
  EXPECT_THAT(message(Rule::kUnknownId), HasSubstr("step 2: runs node 55; the graph has 8 nodes"));
  slot("h").value = ValueId(77);
  EXPECT_THAT(message(Rule::kUnknownId), HasSubstr("holds value 77; the graph has 12 values"));
  schedule_.exit.push_back(SlotId(98));
  EXPECT_THAT(message(Rule::kUnknownId), HasSubstr("exit names slot 98"));
  schedule_.entry.emplace_back();
  EXPECT_THAT(message(Rule::kUnknownId), HasSubstr("entry names slot 4294967295"));
}

TEST_F(Verify, CountsReadsAndWrites) {
  at(0).reads.pop_back();
  EXPECT_EQ(message(Rule::kArity), "step 0 'h': reads 1 slots; the node has 2 inputs\n");
  at(0).reads = {slot_id("x"), slot_id("w")};
  at(0).writes.push_back(slot_id("y"));
  EXPECT_EQ(message(Rule::kArity), "step 0 'h': writes 2 slots; the node has 1 outputs\n");
}

TEST_F(Verify, RejectsASlotOfAnotherValue) {
  std::swap(at(0).reads[0], at(0).reads[1]);
  EXPECT_THAT(message(Rule::kSlotValue),
              HasSubstr("step 0 'h': reads slot 1 ('w', bytes [64, 128)); the node reads 'x'"));
  std::swap(at(0).reads[0], at(0).reads[1]);
  at(1).writes[0] = slot_id("h", 1);
  EXPECT_THAT(message(Rule::kSlotValue), HasSubstr("the node writes 'y'"));
}

TEST_F(Verify, RejectsSlotsAndRunsOfReshapedViews) {
  // The reshape itself, writing a slot of its own.
  const NodeId reshape = nodes({"view"})[0];
  const ValueId view = step_.prepared.graph.nodes[reshape].outputs[0];
  const SlotId copy = schedule_.slots.push_back({view, 0, 64});
  move_to_end(copy);
  schedule_.instructions.insert(schedule_.instructions.begin() + 2,
                                {reshape, {slot_id("y")}, {copy}, 0, 0});
  EXPECT_THAT(message(Rule::kSlotValue), HasSubstr("a reshape copies nothing and never runs"));
  EXPECT_THAT(message(Rule::kSlotValue), HasSubstr("its bytes are those of 'y'"));
}

TEST_F(Verify, RejectsASlotOfOtherBytes) {
  slot("y").bytes = 60;
  EXPECT_THAT(message(Rule::kSlotBytes), HasSubstr("has 60 bytes; 'y' takes 64"));
  slot("y").bytes = -64;
  EXPECT_THAT(message(Rule::kSlotBytes), HasSubstr("has -64 bytes"));
}

TEST_F(Verify, RejectsMisalignedOffsets) {
  move_to_end(slot_id("y"));
  slot("y").offset -= 4;
  EXPECT_THAT(message(Rule::kAlignment), HasSubstr("which is no multiple of 64"));
  slot("y").offset += 4;
  at(0).workspace_offset += 8;
  EXPECT_THAT(message(Rule::kAlignment), HasSubstr("step 0 'h': workspace starts at"));
}

TEST_F(Verify, RejectsWhatLeavesTheArena) {
  slot("y").offset = schedule_.arena_bytes;
  EXPECT_THAT(message(Rule::kOutsideArena), HasSubstr("leaves the arena"));
  slot("y").offset = -64;
  EXPECT_THAT(message(Rule::kOutsideArena), HasSubstr("bytes [-64, 0)"));
  slot("y").offset = (std::int64_t{1} << 62) + ((std::int64_t{1} << 62) - 64);
  EXPECT_THAT(message(Rule::kOutsideArena), HasSubstr("leaves the arena"));
}

TEST_F(Verify, RejectsAWorkspaceThatLeavesTheArena) {
  at(0).workspace_offset = schedule_.arena_bytes - 64;
  EXPECT_THAT(message(Rule::kOutsideArena), HasSubstr("step 0 'h': workspace ["));
}

TEST_F(Verify, RejectsAnotherWorkspaceThanBooked) {
  at(0).workspace_bytes = 64;
  EXPECT_EQ(message(Rule::kWorkspaceBytes),
            "step 0 'h': has a workspace of 64 bytes; the node books 128 for algorithm 0\n");
  at(0).workspace_bytes = 128;
  at(1).workspace_bytes = 1;
  EXPECT_THAT(message(Rule::kWorkspaceBytes),
              HasSubstr("a workspace of 1 bytes; the node books 0"));
}

TEST_F(Verify, AcceptsALeanerAlgorithmThatIsTheSameInAllRuns) {
  // h (steps 0 and 3) books 128 bytes for algorithm 0, 64 for algorithm 1.
  step_.prepared.nodes[at(0).node].others = {{"lean", 64, 99}};
  for (std::size_t step : {0, 3}) {
    at(step).algorithm = 1;
    at(step).workspace_bytes = 64;
  }
  EXPECT_THAT(broken_rules(), ::testing::IsEmpty());
}

TEST_F(Verify, RejectsTheWorkspaceOfAnotherAlgorithm) {
  step_.prepared.nodes[at(0).node].others = {{"lean", 64, 99}};
  at(0).algorithm = at(3).algorithm = 1;
  at(3).workspace_bytes = 64;
  EXPECT_EQ(message(Rule::kWorkspaceBytes),
            "step 0 'h': has a workspace of 128 bytes; the node books 64 for algorithm 1\n");
}

TEST_F(Verify, RejectsAnAlgorithmThatTheNodeDoesNotHave) {
  at(1).algorithm = 1;
  EXPECT_EQ(message(Rule::kAlgorithm),
            "step 1 'y': runs algorithm 1; the node has 1, counted from 0\n");
  at(1).algorithm = -1;
  EXPECT_THAT(message(Rule::kAlgorithm), HasSubstr("runs algorithm -1"));
}

TEST_F(Verify, RejectsARecomputationWithAnotherAlgorithm) {
  step_.prepared.nodes[at(0).node].others = {{"lean", 64, 99}};
  at(3).algorithm = 1;
  at(3).workspace_bytes = 64;
  EXPECT_EQ(message(Rule::kAlgorithmDiffers),
            "step 3 'h': runs again with algorithm 1, where the first run at step 0 had 0\n");
}

TEST_F(Verify, RejectsASlotWrittenTwice) {
  at(3).writes[0] = slot_id("h");
  at(4).reads[0] = slot_id("h");
  EXPECT_THAT(message(Rule::kWrittenTwice), HasSubstr("step 3 'h': writes slot 4"));
}

TEST_F(Verify, RejectsAnEntrySlotThatIsWritten) {
  schedule_.entry.push_back(slot_id("h"));
  EXPECT_THAT(message(Rule::kWrittenTwice), HasSubstr("step 0 'h'"));
  EXPECT_THAT(message(Rule::kEntry), HasSubstr("is an entry slot, but a node makes its value"));
}

TEST_F(Verify, RejectsAReadBeforeTheWrite) {
  std::swap(at(0), at(1));
  EXPECT_THAT(message(Rule::kReadBeforeWrite),
              HasSubstr("step 0 'y': reads slot 4 ('h', bytes [256, 320)), which nothing has"));
}

TEST_F(Verify, RejectsAReadOfOverwrittenBytes) {
  // y of step 1 on top of x, which h reads again at step 3.
  slot("y").offset = slot("x").offset;
  EXPECT_THAT(message(Rule::kStaleRead),
              HasSubstr("step 3 'h': reads slot 0 ('x', bytes [0, 64)), but slot 5 ('y', bytes [0, "
                        "64)) took bytes [0, 64) since it was written"));
  EXPECT_THAT(message(Rule::kOverlap), HasSubstr("step 1 'y': writes"));
}

TEST_F(Verify, RejectsAWriteOverALiveSlotOrAnotherWrite) {
  slot("y", 1).offset = slot("loss").offset;
  EXPECT_THAT(message(Rule::kOverlap), HasSubstr("which must be intact at the end"));
}

TEST_F(Verify, RejectsTwoWritesOnTheSameBytes) {
  GraphMaker g("two outputs");
  const ValueId x = g.outside("x", {16}, graph::Role::kInput);
  const ValueId gamma = g.outside("gamma", {16}, graph::Role::kParameter);
  const auto made = g.node(graph::OpKind::kLayerNorm, {x, gamma, gamma},
                           {{"y", {16}}, {"mean", {}}, {"var", {}}});
  g.fetch(made[0]);
  step_ = {std::move(g.prepared()), {NodeId(0)}};
  const TestLowering lowering(step_.prepared);
  schedule_ = lowering.lower(lowering.order(step_.nodes));
  EXPECT_THAT(broken_rules(), ::testing::IsEmpty());
  slot("mean").offset = slot("y").offset;
  EXPECT_THAT(message(Rule::kOverlap), HasSubstr("which it writes too"));
}

TEST_F(Verify, RejectsAWorkspaceOnLiveReadOrWrittenBytes) {
  for (const char* victim : {"x", "unread", "h"}) {  // read here, needed at the end, written here
    const Bytes before = at(0).workspace_offset;
    at(0).workspace_offset = slot(victim).offset;
    EXPECT_THAT(message(Rule::kOverlap), HasSubstr("workspace [")) << victim;
    at(0).workspace_offset = before;
  }
  EXPECT_EQ(message(Rule::kOverlap), "");
}

TEST_F(Verify, RejectsOverlappingEntrySlots) {
  slot("x").offset = slot("unread").offset;
  EXPECT_THAT(message(Rule::kOverlap), HasSubstr("overlaps entry"));
}

TEST_F(Verify, RejectsInPlaceWithoutLeave) {
  // y in place of h (read for the last time): allowed once the node has the pair.
  move_to_end(slot_id("loss"));
  slot("y").offset = slot("h").offset;
  EXPECT_THAT(message(Rule::kInplaceNotLegal),
              HasSubstr("the node does not work in place on that input"));
  step_.prepared.nodes[nodes({"y"})[0]].inplace = {{0, 0, false}};
  EXPECT_EQ(message(Rule::kInplaceNotLegal), "");
}

TEST_F(Verify, RejectsInPlaceOverWhatIsReadLater) {
  step_.prepared.nodes[nodes({"h"})[0]].inplace = {{0, 0, false}, {1, 0, false}};
  slot("h").offset = slot("x").offset;  // h = x * w over x, which step 3 reads
  EXPECT_THAT(message(Rule::kInplaceNotLegal), HasSubstr("that one is read at step 7 'gw'"));
}

TEST_F(Verify, RejectsInPlaceAtAnotherOffset) {
  // Two floats further than the input: even with the pair not in place.
  step_.prepared.nodes[nodes({"y"})[0]].inplace = {{0, 0, false}};
  move_to_end(slot_id("h"));
  schedule_.arena_bytes += 64;
  slot("y").offset = slot("h").offset + 32;
  EXPECT_THAT(message(Rule::kInplaceNotLegal), HasSubstr("equal offsets and bytes"));
}

TEST_F(Verify, RejectsInPlaceWhenOnlyOneOfTwoReadsAllowsIt) {
  GraphMaker g("square");
  const ValueId x = g.outside("x", {16}, graph::Role::kInput);
  g.fetch(g.node(graph::OpKind::kMul, {x, x}, {{"y", {16}}}, {{0, 0}, {1, 0}})[0]);
  step_ = {std::move(g.prepared()), {NodeId(0)}};
  const TestLowering lowering(step_.prepared);
  schedule_ = lowering.lower(lowering.order(step_.nodes));
  EXPECT_EQ(schedule_.arena_bytes, 64);
  EXPECT_THAT(broken_rules(), ::testing::IsEmpty());
  step_.prepared.nodes[NodeId(0)].inplace.pop_back();
  EXPECT_THAT(broken_rules(), ::testing::ElementsAre("inplace_not_legal"));
}

TEST_F(Verify, RequiresForcedPairsInPlace) {
  move_to_end(slot_id("w.next"));
  EXPECT_THAT(message(Rule::kInplaceRequired), HasSubstr("step 8 'w.next': must write"));
  EXPECT_THAT(message(Rule::kExit), HasSubstr("the first version of that value lies at 64"));
}

TEST_F(Verify, RequiresUpdatesAndFetchedOutputsToRun) {
  schedule_.instructions.pop_back();
  EXPECT_EQ(message(Rule::kNotRun), "node 'w.next' never runs; it makes the update of 'w'\n");
  schedule_.instructions.erase(schedule_.instructions.begin() + 2);
  EXPECT_THAT(message(Rule::kNotRun),
              HasSubstr("node 'loss' never runs; it makes the output 'loss'"));
}

TEST_F(Verify, RejectsASecondUpdate) {
  schedule_.instructions.push_back(at(8));
  const SlotId again = schedule_.slots.push_back(slot("w.next"));
  at(9).writes = {again};
  EXPECT_THAT(message(Rule::kRunTwice), HasSubstr("step 9 'w.next': runs again; a "));
}

TEST_F(Verify, WantsOneEntrySlotPerValueFromOutside) {
  std::erase(schedule_.entry, slot_id("unread"));
  EXPECT_EQ(message(Rule::kEntry), "state 'unread' has 0 entry slots; it needs one\n");
  schedule_.entry.push_back(slot_id("unread"));
  schedule_.entry.push_back(add_slot("x"));
  EXPECT_EQ(message(Rule::kEntry), "input 'x' has 2 entry slots; it needs one\n");
}

TEST_F(Verify, WantsOneExitSlotPerFetchedOutputAndPersistentValue) {
  std::erase(schedule_.exit, slot_id("unread"));
  EXPECT_EQ(message(Rule::kExit), "'unread' has 0 exit slots; it needs one\n");
  schedule_.exit.push_back(slot_id("unread"));
  schedule_.exit.push_back(slot_id("unread"));
  EXPECT_EQ(message(Rule::kExit), "'unread' has 2 exit slots; it needs one\n");
  schedule_.exit.back() = slot_id("gh");
  EXPECT_THAT(message(Rule::kExit), HasSubstr("is neither fetched nor the last version"));
}

TEST_F(Verify, WantsExitSlotsIntact) {
  move_to_end(slot_id("gw"));
  slot("gw").offset = slot("loss").offset;
  EXPECT_THAT(message(Rule::kExit), HasSubstr("is not intact at the end: slot"));
  schedule_.exit.push_back(add_slot("loss"));
  EXPECT_THAT(message(Rule::kExit), HasSubstr("is never written"));
}

TEST_F(Verify, WantsAFetchedInputIntactAtTheEnd) {
  step_.prepared.graph.outputs.push_back(value("x"));
  EXPECT_EQ(message(Rule::kExit), "'x' has 0 exit slots; it needs one\n");
  schedule_.exit.push_back(slot_id("x"));
  EXPECT_THAT(broken_rules(), ::testing::IsEmpty());
}

TEST_F(Verify, FetchesAReshapedViewFromTheBytesBelowIt) {
  step_.prepared.graph.outputs.push_back(step_.prepared.graph.nodes[nodes({"view"})[0]].outputs[0]);
  EXPECT_EQ(message(Rule::kExit), "'y' has 0 exit slots; it needs one\n");
  move_to_end(slot_id("y"));
  schedule_.exit.push_back(slot_id("y"));
  EXPECT_THAT(broken_rules(), ::testing::IsEmpty());
}

TEST_F(Verify, RejectsARecomputationAfterTheUpdateOfWhatItReads) {
  // h again at the very end: w's bytes hold w.next by then.
  const SlotId again = add_slot("h");
  schedule_.instructions.push_back(at(0));
  at(9).writes = {again};
  EXPECT_EQ(message(Rule::kRecomputeDiffers),
            "step 9 'h': runs again and finds 'w.next' for 'w', where the first run at step 0 "
            "found 'w'\n");
}

TEST_F(Verify, WantsTheArenaAsHighAsItsHighestByte) {
  schedule_.arena_bytes += 64;
  EXPECT_THAT(broken_rules(), ::testing::ElementsAre("peak"));
  schedule_.arena_bytes -= 65;
  EXPECT_THAT(broken_rules(), Contains("peak"));
}

TEST_F(Verify, StopsAtTheLimit) {
  for (Slot& slot : schedule_.slots) slot.offset += 4;
  EXPECT_EQ(verify(step_.prepared, schedule_, 3).size(), 3u);
}

TEST_F(Verify, AcceptsAnEmptyStep) {
  EXPECT_TRUE(verify(graph::PreparedGraph{}, Schedule{}).empty());
}

TEST_F(Verify, WantsTheArenaWithinTheBudget) {
  PlannedStep step{step_.prepared, schedule_, "keep_all", schedule_.arena_bytes};
  EXPECT_TRUE(verify(step).empty());
  --step.budget_bytes;
  const auto violations = verify(step);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].rule, Rule::kBudget);
  EXPECT_EQ(violations[0].message, fmt::format("the arena has {} bytes; the budget is {}",
                                               schedule_.arena_bytes, step.budget_bytes));
}

TEST(RuleNames, AreDistinct) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(Rule::kBudget); ++i) {
    names.insert(rule_name(static_cast<Rule>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Rule::kBudget) + 1);
  EXPECT_EQ(names.count("unknown rule"), 0u);
}

}  // namespace
}  // namespace reprise::schedule
