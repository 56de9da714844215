// From when on the bytes of an input may be written again.

#include "schedule/input_windows.h"

#include <gtest/gtest.h>

#include "graph/builder.h"

namespace reprise::schedule {
namespace {

// x [0, 64) -> relu a [64, 128) -> relu b, then relu c; b and c lie where a test puts them.
class InputWindows : public testing::Test {
 protected:
  InputWindows() {
    graph::Builder b("three");
    const ValueId x = b.input("x", {16});
    const ValueId a = b.relu(x, "a");
    const ValueId second = b.relu(a, "b");
    const ValueId c = b.relu(second, "c");
    b.add_output(c);
    graph_ = b.finish();
    values_ = {x, a, second, c};
  }

  [[nodiscard]] Schedule with_offsets(Bytes b, Bytes c) const {
    Schedule schedule;
    const Bytes offsets[] = {0, 64, b, c};
    for (std::size_t i = 0; i < 4; ++i)
      schedule.slots.push_back({.value = values_[i], .offset = offsets[i], .bytes = 64});
    for (std::size_t i = 0; i < 3; ++i) {
      schedule.instructions.push_back(
          {.node = NodeId(i), .reads = {SlotId(i)}, .writes = {SlotId(i + 1)}});
    }
    schedule.entry = {SlotId(0)};
    schedule.exit = {SlotId(3)};
    return schedule;
  }
  [[nodiscard]] InputWindow window_of(const Schedule& schedule) const {
    const auto windows = input_windows(graph_, schedule);
    EXPECT_EQ(windows.size(), 1u);
    return windows.at(0);
  }

  graph::Graph graph_;
  std::vector<ValueId> values_;
};

TEST_F(InputWindows, OpensAfterTheOnlyReader) {
  EXPECT_EQ(window_of(with_offsets(128, 192)).last_use, 0u);
}

TEST_F(InputWindows, OpensAfterTheLastThatTouchesItsBytesForAnotherValue) {
  // b takes the input's bytes; instruction 1 writes it, instruction 2 reads it.
  EXPECT_EQ(window_of(with_offsets(0, 192)).last_use, 2u);
}

TEST_F(InputWindows, StaysShutWhereTheStepsResultLies) {
  EXPECT_EQ(window_of(with_offsets(128, 0)).last_use, std::nullopt);
}

TEST_F(InputWindows, CountsWorkspacesAndAnyByteInCommon) {
  Schedule schedule = with_offsets(128, 192);
  schedule.instructions[1].workspace_offset = 32;
  schedule.instructions[1].workspace_bytes = 16;
  EXPECT_EQ(window_of(schedule).last_use, 1u);
  schedule.instructions[1].workspace_offset = 64;  // right behind it
  EXPECT_EQ(window_of(schedule).last_use, 0u);
}

}  // namespace
}  // namespace reprise::schedule
