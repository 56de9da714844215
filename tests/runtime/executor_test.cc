#include "runtime/executor.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/error.h"
#include "tests/runtime/fake_program.h"

namespace reprise::runtime {
namespace {

using graph::Role;
using testing::FakeProgram;
using testing::floats;
using testing::ScheduleWriter;
using testing::SlotId;

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

// One step of a one-parameter "network", 16 floats (64 bytes) a value:
//   y = x + w ;  w' = w - 0.5 * y  (in place)      offsets: w 0, x 64, y 128
struct TinyStep {
  FakeProgram program;
  ValueId x, w, y, w_next;
  schedule::Schedule schedule;
  bool add_fails = false;
  bool update_fails_halfway = false;

  explicit TinyStep(Bytes workspace = 0) {
    x = program.value("x", 16, Role::kInput);
    w = program.value("w", 16, Role::kParameter);
    y = program.value("y", 16);
    w_next = program.value("w.next", 16, Role::kUpdate);
    const auto add = program.node(
        "add", {x, w}, {y},
        [this](const kernels::Call& call, const graph::StepContext&) {
          if (add_fails) throw std::runtime_error("the kernel gave up");
          for (int i = 0; i < 16; ++i) {
            floats(call.outputs[0])[i] = floats(call.inputs[0])[i] + floats(call.inputs[1])[i];
          }
        },
        workspace);
    const auto update =
        program.node("update", {w, y}, {w_next},
                     [this](const kernels::Call& call, const graph::StepContext&) {
                       for (int i = 0; i < 16; ++i) {
                         if (update_fails_halfway && i == 8) throw base::device_error("power lost");
                         floats(call.outputs[0])[i] =
                             floats(call.inputs[0])[i] - 0.5f * floats(call.inputs[1])[i];
                       }
                     },
                     0, {{.input = 0, .output = 0, .forced = true}});
    program.prepared_graph().graph.updates.push_back({w, w_next});
    program.prepared_graph().graph.outputs.push_back(y);
    ScheduleWriter writer(program);
    const SlotId slot_w = writer.entry(w, 0);
    const SlotId slot_x = writer.entry(x, 64);
    const SlotId slot_y = writer.slot(y, 128);
    const SlotId slot_next = writer.slot(w_next, 0);
    writer.run(add, {slot_x, slot_w}, {slot_y}, 192);
    writer.run(update, {slot_w, slot_y}, {slot_next});
    writer.exit(slot_y);
    writer.exit(slot_next);
    schedule = writer.finish();
  }

  void write(Executor& executor, float x_value, float w_value) const {
    executor.write(x, bytes_of(std::vector<float>(16, x_value)));
    executor.write(w, bytes_of(std::vector<float>(16, w_value)));
  }
  static float first(const Executor& executor, ValueId value) {
    std::vector<float> values(16);
    executor.read(value, std::as_writable_bytes(std::span(values)));
    for (const float other : values) EXPECT_EQ(other, values[0]);
    return values[0];
  }
};

class BothModes : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Executor, BothModes, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Debug" : "Plain"; });

TEST_P(BothModes, RunsInstructionsInOrderAndUpdatesInPlace) {
  TinyStep step;
  Arena arena(step.schedule.arena_bytes);
  Executor executor(step.program, step.schedule, arena, {.debug = GetParam()});
  step.write(executor, 3, 1);
  executor.run({});
  EXPECT_EQ(TinyStep::first(executor, step.y), 4);   // 3 + 1
  EXPECT_EQ(TinyStep::first(executor, step.w), -1);  // 1 - 0.5 * 4
  executor.write(step.x, bytes_of(std::vector<float>(16, 5)));
  executor.run({});
  EXPECT_EQ(TinyStep::first(executor, step.y), 4);        // 5 + -1
  EXPECT_EQ(TinyStep::first(executor, step.w), -3);       // -1 - 0.5 * 4
  EXPECT_EQ(TinyStep::first(executor, step.w_next), -3);  // the last version by its own name
}

TEST_P(BothModes, HandsSeedAndStepToEveryKernel) {
  FakeProgram program;
  const ValueId y = program.value("y", 1);
  graph::StepContext seen;
  const auto node = program.node(
      "draw", {}, {y},
      [&](const kernels::Call&, const graph::StepContext& context) { seen = context; });
  ScheduleWriter writer(program);
  writer.run(node, {}, {writer.slot(y, 0)});
  Arena arena(64);
  Executor executor(program, writer.finish(), arena, {.debug = GetParam()});
  executor.run({.seed = 7, .step = 9});
  EXPECT_EQ(seen, (graph::StepContext{.seed = 7, .step = 9}));
}

TEST_P(BothModes, PeakIsTheHighestByteHandedOut) {
  TinyStep step(100);  // workspace [192, 292) -> 320 after alignment
  EXPECT_EQ(step.schedule.arena_bytes, 320);
  Arena arena(step.schedule.arena_bytes + 4096);
  Executor executor(step.program, step.schedule, arena, {.debug = GetParam()});
  EXPECT_EQ(executor.peak_bytes_measured(), 0);
  step.write(executor, 3, 1);
  EXPECT_EQ(executor.peak_bytes_measured(), 128);  // x ends at 128
  executor.run({});
  EXPECT_EQ(executor.peak_bytes_measured(), 320);
}

TEST_P(BothModes, KernelFailureNamesTheNodeAndARestoredStepEqualsACleanOne) {
  for (const bool in_update : {false, true}) {
    TinyStep step;
    Arena arena(step.schedule.arena_bytes);
    Executor executor(step.program, step.schedule, arena, {.debug = GetParam()});
    step.write(executor, 3, 1);
    std::vector<std::byte> before;
    executor.capture_entry(before);
    EXPECT_EQ(before.size(), 128u);  // w and x
    (in_update ? step.update_fails_halfway : step.add_fails) = true;
    try {
      executor.run({});
      FAIL() << "the failure got lost";
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::kDevice);
      EXPECT_STREQ(error.what(),
                   in_update ? "node 'update': power lost" : "node 'add': the kernel gave up");
    }
    EXPECT_EQ(executor.state_lost(), in_update);  // add runs before it
    step.add_fails = step.update_fails_halfway = false;
    executor.restore_entry(before);
    executor.run({});
    EXPECT_FALSE(executor.state_lost());
    EXPECT_EQ(TinyStep::first(executor, step.y), 4);
    EXPECT_EQ(TinyStep::first(executor, step.w), -1);
  }
}

TEST(Executor, KernelErrorThatNamesItsNodePassesUnchanged) {
  FakeProgram program;
  const ValueId y = program.value("y", 1);
  const auto node = program.node("embed", {}, {y}, [](const kernels::Call&, const auto&) {
    throw base::input_error("node 'embed': id 9 outside [0,8)");
  });
  ScheduleWriter writer(program);
  writer.run(node, {}, {writer.slot(y, 0)});
  Arena arena(64);
  Executor executor(program, writer.finish(), arena);
  try {
    executor.run({});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInput);
    EXPECT_STREQ(error.what(), "node 'embed': id 9 outside [0,8)");
  }
}

TEST(Executor, CaptureOfAnotherSizeIsRefused) {
  TinyStep step;
  Arena arena(step.schedule.arena_bytes);
  Executor executor(step.program, step.schedule, arena);
  EXPECT_THROW(executor.restore_entry(std::vector<std::byte>(127)), base::Error);
}

TEST(Executor, TwoExecutorsShareTheParametersOfOneArena) {
  TinyStep training;
  TinyStep other;  // the same offsets for w
  Arena arena(training.schedule.arena_bytes);
  Executor first(training.program, training.schedule, arena);
  Executor second(other.program, other.schedule, arena);
  training.write(first, 3, 1);
  first.run({});  // w = -1
  second.write(other.x, bytes_of(std::vector<float>(16, 5)));
  second.run({});
  EXPECT_EQ(TinyStep::first(second, other.y), 4);  // 5 + -1
}

template <class Action>
std::string input_error_of(Action action) {
  try {
    action();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInput) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Executor, AnArenaTooSmallIsNamedWithBothSizes) {
  TinyStep step;
  Arena arena(128);
  EXPECT_EQ(input_error_of([&] { Executor executor(step.program, step.schedule, arena); }),
            "the schedule needs an arena of 192 bytes, got one of 128 bytes");
}

TEST(Executor, ValuesThatCannotBeWrittenOrReadAreNamed) {
  TinyStep step;
  Arena arena(step.schedule.arena_bytes);
  Executor executor(step.program, step.schedule, arena);
  std::vector<std::byte> plain(64);
  EXPECT_EQ(input_error_of([&] { executor.write(step.y, plain); }),
            "value 'y' is made by the step: only inputs and persistent values can be written");
  EXPECT_EQ(
      input_error_of([&] { executor.read(step.x, plain); }),
      "value 'x' is not kept to the end of the step: add it to the graph's outputs to read it");
  EXPECT_EQ(input_error_of([&] { executor.write(step.x, std::span(plain).first(63)); }),
            "value 'x' has 64 bytes, got 63");
  EXPECT_EQ(input_error_of([&] { executor.write(ValueId(99), plain); }),
            "value 99: the graph has 4 values");
}

TEST(Executor, ASchedulePastTheGraphIsRefusedBeforeItRuns) {
  TinyStep step;
  Arena arena(4096);
  const auto refusal = [&](const std::function<void(schedule::Schedule&)>& damage) {
    schedule::Schedule damaged = step.schedule;
    damage(damaged);
    return input_error_of([&] { Executor executor(step.program, damaged, arena); });
  };
  using schedule::Schedule;
  EXPECT_NE(refusal([](Schedule& s) {
              s.instructions[0].node = graph::NodeId(2);
            }).find("runs node 2, but the graph has 2 nodes"),
            std::string::npos);
  EXPECT_NE(refusal([](Schedule& s) {
              s.instructions[0].reads.pop_back();
            }).find("(node 'add') reads 1 slots; the node has 2"),
            std::string::npos);
  EXPECT_NE(refusal([](Schedule& s) {
              s.instructions[0].reads[0] = SlotId(9);
            }).find("names slot 9, but there are 4 slots"),
            std::string::npos);
  EXPECT_NE(refusal([](Schedule& s) {
              std::swap(s.instructions[0].reads[0], s.instructions[0].reads[1]);
            }).find("reads slot 0 of value 'w' in place of 'x'"),
            std::string::npos);
  EXPECT_NE(refusal([](Schedule& s) {
              s.slots[SlotId(2)].offset = 192;
            }).find("slot 2 lies at offset 192 with 64 bytes; the arena has 192 bytes"),
            std::string::npos);
  EXPECT_NE(refusal([](Schedule& s) { s.slots[SlotId(2)].offset = 100; }).find("offset 100"),
            std::string::npos);
  EXPECT_NE(refusal([](Schedule& s) { s.slots[SlotId(2)].offset = -64; }).find("offset -64"),
            std::string::npos);
  EXPECT_NE(refusal([](Schedule& s) { s.exit.push_back(SlotId(77)); }).find("exit list"),
            std::string::npos);
  TinyStep with_workspace(100);
  with_workspace.schedule.instructions[0].workspace_bytes = 64;
  EXPECT_NE(input_error_of([&] {
              Executor executor(with_workspace.program, with_workspace.schedule, arena);
            }).find("a workspace of 64 bytes; the kernel needs 100"),
            std::string::npos);
}

TEST_P(BothModes, AnEmptyScheduleRuns) {
  FakeProgram program;
  Arena arena(0);
  Executor executor(program, {}, arena, {.debug = GetParam()});
  executor.run({});
  EXPECT_EQ(executor.peak_bytes_measured(), 0);
}

}  // namespace
}  // namespace reprise::runtime
