#include "schedule/usage.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "schedule/describe.h"
#include "tests/schedule/random_step.h"

namespace reprise::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestLowering;

// The tiny step with h and y run again; all values have 64 bytes, h books 128 of workspace, and
// everything works in place where it may.
//   0 h  1 y  2 loss  3 h  4 y  5 gy  6 gh  7 gw  8 w.next
struct Tiny {
  testing::TinyStep step = testing::tiny_step();
  Schedule schedule;
  Tiny() {
    const auto& n = step.nodes;
    const TestLowering lowering(step.prepared);
    schedule =
        lowering.lower(lowering.order({n[0], n[1], n[2], n[0], n[1], n[3], n[4], n[5], n[6]}));
  }
};

TEST(Usage, SumsLiveBytesPerStepAndCountsBytesPassedOnInPlaceOnce) {
  const Tiny tiny;
  const Usage usage = measure_usage(tiny.step.prepared, tiny.schedule);
  // x, w, frozen, unread: 256. Then: h and its workspace; y in place; loss in place (and fetched);
  // h and workspace; y in place; gy; gh in place of gy; gw in place of gh, y gone; the update, x
  // gone.
  EXPECT_THAT(usage.live_bytes, ElementsAre(448, 320, 320, 512, 384, 448, 448, 384, 320));
  EXPECT_EQ(usage.peak(), 512);
  EXPECT_EQ(usage.peak_step, 3);
}

// Program order: forward 0, loss 1, backward 2. The planner ran the backward node first and the
// forward node again at the end:  2 0 1 0
TEST(Usage, ForwardEndsBehindTheLossWhereverBackwardNodesRun) {
  graph::Graph graph;
  for (std::size_t i = 0; i < 3; ++i) {
    graph.nodes.push_back({});
    graph::Value made;
    made.producer = NodeId(i);
    graph.values.push_back(made);
  }
  Schedule schedule;
  for (const std::size_t node : {2U, 0U, 1U, 0U}) {
    Instruction run;
    run.node = NodeId(node);
    schedule.instructions.push_back(run);
  }
  EXPECT_EQ(end_of_forward(graph, schedule), 4);  // no loss: all of it
  graph.loss = ValueId(1);
  EXPECT_EQ(end_of_forward(graph, schedule), 3);
}

TEST(Usage, SaysWhatTheBytesAreFor) {
  const Tiny tiny;
  const Usage usage = measure_usage(tiny.step.prepared, tiny.schedule);
  EXPECT_EQ(usage.peak_of(Category::kParameter), 128);  // w (later w.next), frozen
  EXPECT_EQ(usage.peak_of(Category::kState), 64);
  EXPECT_EQ(usage.peak_of(Category::kInput), 64);
  EXPECT_EQ(usage.peak_of(Category::kActivation), 64);
  EXPECT_EQ(usage.peak_of(Category::kRecomputed), 64);
  EXPECT_EQ(usage.peak_of(Category::kGradient), 64);
  EXPECT_EQ(usage.peak_of(Category::kWorkspace), 128);
  EXPECT_EQ(usage.peak_of(Category::kOptimizerState), 0);
  EXPECT_EQ(usage.at_peak(Category::kGradient), 0);
  EXPECT_EQ(usage.recomputed, 2);
  EXPECT_THAT(usage.activities,
              ElementsAre(Activity::kForward, Activity::kForward, Activity::kForward,
                          Activity::kRecompute, Activity::kRecompute, Activity::kBackward,
                          Activity::kBackward, Activity::kBackward, Activity::kUpdate));
}

TEST(Usage, AgreesWithTheMemoryModel) {
  // Sizes that are multiples of the alignment, so that both count the same bytes.
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    testing::RandomStep step(seed);
    graph::PreparedGraph prepared = step.prepared();
    for (Bytes& bytes : prepared.value_bytes) {
      bytes = base::align_up(bytes, graph::kArenaAlignment);
    }
    for (graph::PreparedNode& node : prepared.nodes) {
      node.workspace_bytes = base::align_up(node.workspace_bytes, graph::kArenaAlignment);
    }
    const TestLowering lowering(prepared);
    Order order;
    do {
      order = testing::draw_order(step.random(), lowering.problem());
    } while (trace_order(lowering.problem(), order).fault || order.empty());
    const MemoryProfile profile = profile_memory(trace_order(lowering.problem(), order).trace);
    const Usage usage = measure_usage(prepared, lowering.lower(order));
    ASSERT_EQ(usage.live_bytes, profile.live_bytes) << "seed " << seed;
    ASSERT_EQ(usage.peak_step, profile.peak_step) << "seed " << seed;
  }
}

TEST(SlotLifetimes, RunFromTheWriterToOnePastTheLastReader) {
  Schedule schedule;
  for (int i = 0; i < 5; ++i) schedule.slots.push_back({ValueId(0), 0, 64});
  const auto slot = [](std::size_t i) { return SlotId(i); };
  schedule.instructions = {{NodeId(0), {slot(0)}, {slot(2)}, 0, 0},
                           {NodeId(0), {slot(0)}, {slot(3), slot(4)}, 0, 0},
                           {NodeId(0), {slot(2)}, {}, 0, 0}};
  schedule.entry = {slot(0), slot(1)};
  schedule.exit = {slot(3)};
  const auto lifetimes = slot_lifetimes(schedule);
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected{
      {0, 2},   // entry, read at 0 and 1
      {0, 1},   // entry, never read
      {0, 3},   // written at 0, read at 2
      {1, 3},   // written at 1, exit
      {1, 2}};  // written at 1, never read
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(lifetimes[slot(i)].start, expected[i].first) << i;
    EXPECT_EQ(lifetimes[slot(i)].end, expected[i].second) << i;
  }
}

TEST(Describe, TellsFiguresUsesLargestSlotsAndInstructions) {
  const Tiny tiny;
  const std::string text = describe(tiny.step.prepared, tiny.schedule, {.instructions = 2});
  EXPECT_THAT(text, HasSubstr("instructions  9, 2 of them recomputed"));
  // h and y again: 2 of 7 equal costs.
  EXPECT_THAT(text, HasSubstr("28.6 % more than without recomputation"));
  EXPECT_THAT(text, HasSubstr("live peak     512 B in instruction 3, h"));
  EXPECT_THAT(text, HasSubstr("workspace"));
  EXPECT_THAT(text, HasSubstr("...  7 more"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("optimizer state")));
  EXPECT_EQ(text.back(), '\n');
}

TEST(Describe, SpeaksOfAnEmptyStepToo) {
  EXPECT_THAT(describe({}, {}), HasSubstr("instructions  0, 0 of them recomputed"));
}

}  // namespace
}  // namespace reprise::schedule
