// Debug mode: what a wrong kernel does to bytes that are not its own gets named.

#include <cmath>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "runtime/debug_arena.h"
#include "runtime/executor.h"
#include "tests/runtime/fake_program.h"

namespace reprise::runtime {
namespace {

using graph::Role;
using testing::FakeProgram;
using testing::floats;
using testing::Kernel;
using testing::ScheduleWriter;
using testing::SlotId;

// copy: x -> y, then last: y -> z, then end: x -> u. 16 floats each; x 0, y 64, z 128 and u 64.
//   instruction  0     1     2
//   x           [==================)
//   y           [===========)
//   z                 [============) exit
//   u                       [======) exit, takes the bytes of y
struct Chain {
  FakeProgram program;
  ValueId x, y, z, u;
  schedule::Schedule schedule;
  static void copy(const kernels::Call& call, const graph::StepContext&) {
    std::copy_n(call.inputs[0], 64, call.outputs[0]);
  }

  explicit Chain(Kernel middle, Bytes workspace = 0) {
    x = program.value("x", 16, Role::kInput);
    y = program.value("y", 16);
    z = program.value("z", 16);
    u = program.value("u", 16);
    const auto first = program.node("first", {x}, {y}, copy);
    const auto second = program.node("second", {y}, {z}, std::move(middle), workspace);
    const auto third = program.node("third", {x}, {u}, copy);
    program.prepared_graph().graph.outputs = {z, u};
    ScheduleWriter writer(program);
    const SlotId slot_x = writer.entry(x, 0);
    const SlotId slot_y = writer.slot(y, 64);
    const SlotId slot_z = writer.slot(z, 128);
    const SlotId slot_u = writer.slot(u, 64);
    writer.run(first, {slot_x}, {slot_y});
    writer.run(second, {slot_y}, {slot_z}, 192);
    writer.run(third, {slot_x}, {slot_u});
    writer.exit(slot_z);
    writer.exit(slot_u);
    schedule = writer.finish();
  }
};

// The message of the Error(kInternal) that one debug step throws; empty when it runs through.
std::string fault_of(Chain& chain) {
  Arena arena(chain.schedule.arena_bytes);
  Executor executor(chain.program, chain.schedule, arena, {.debug = true});
  executor.write(chain.x, std::vector<std::byte>(64));
  try {
    executor.run({});
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInternal);
    return error.what();
  }
  return "";
}

TEST(ExecutorDebug, ACorrectStepRunsThrough) {
  Chain chain(Chain::copy);
  EXPECT_EQ(fault_of(chain), "");
}

TEST(ExecutorDebug, OneByteBehindAnOutputIsNamed) {
  Chain chain([](const kernels::Call& call, const graph::StepContext& context) {
    Chain::copy(call, context);
    call.outputs[0][64] = std::byte{0};
  });
  EXPECT_EQ(
      fault_of(chain),
      "instruction 1 (node 'second') changed byte 0 behind the end of slot 2 ('z', 64 bytes)");
}

TEST(ExecutorDebug, OneByteBeforeAnOutputIsNamed) {
  Chain chain([](const kernels::Call& call, const graph::StepContext& context) {
    Chain::copy(call, context);
    call.outputs[0][-1] = std::byte{0};
  });
  EXPECT_EQ(fault_of(chain),
            "instruction 1 (node 'second') changed the byte 1 before the start of slot 2 ('z', 64 "
            "bytes)");
}

TEST(ExecutorDebug, OneByteBehindAWorkspaceIsNamed) {
  Chain chain(
      [](const kernels::Call& call, const graph::StepContext& context) {
        Chain::copy(call, context);
        std::fill_n(call.workspace, 101, std::byte{1});
      },
      100);
  EXPECT_EQ(
      fault_of(chain),
      "instruction 1 (node 'second') changed byte 0 behind the end of its workspace (100 bytes)");
}

TEST(ExecutorDebug, AnOverwrittenInputIsNamedEvenAtItsLastRead) {
  Chain chain([](const kernels::Call& call, const graph::StepContext& context) {
    Chain::copy(call, context);
    const_cast<std::byte*>(call.inputs[0])[5] = std::byte{1};
  });
  EXPECT_EQ(fault_of(chain),
            "instruction 1 (node 'second') changed byte 5 of slot 1 ('y', 64 bytes), which it does "
            "not write");
}

TEST(ExecutorDebug, ALiveSlotFarAwayIsWatchedToo) {
  std::byte* z_at = nullptr;
  FakeProgram program;
  const ValueId x = program.value("x", 16, Role::kInput);
  const ValueId z = program.value("z", 16);
  const ValueId u = program.value("u", 16);
  const auto make_z =
      program.node("make_z", {x}, {z}, [&](const kernels::Call& call, const auto& c) {
        Chain::copy(call, c);
        z_at = call.outputs[0];
      });
  const auto make_u =
      program.node("make_u", {x}, {u}, [&](const kernels::Call& call, const auto& c) {
        Chain::copy(call, c);
        z_at[63] = std::byte{9};
      });
  program.prepared_graph().graph.outputs = {z, u};
  ScheduleWriter writer(program);
  const SlotId slot_x = writer.entry(x, 0);
  const SlotId slot_z = writer.slot(z, 64);
  const SlotId slot_u = writer.slot(u, 128);
  writer.run(make_z, {slot_x}, {slot_z});
  writer.run(make_u, {slot_x}, {slot_u});
  writer.exit(slot_z);
  writer.exit(slot_u);
  Arena arena(192);
  Executor executor(program, writer.finish(), arena, {.debug = true});
  executor.write(x, std::vector<std::byte>(64));
  try {
    executor.run({});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_STREQ(
        error.what(),
        "instruction 1 (node 'make_u') changed byte 63 of slot 1 ('z', 64 bytes), which it "
        "does not write");
  }
}

TEST(ExecutorDebug, FreedBytesAndWorkspacesAreNaN) {
  const std::byte* y_at = nullptr;
  const std::byte* workspace_at = nullptr;
  bool all_nan = false;
  Chain chain(
      [&](const kernels::Call& call, const graph::StepContext& context) {
        Chain::copy(call, context);
        y_at = call.inputs[0];
        workspace_at = call.workspace;
        for (int i = 0; i < 16; ++i) {
          EXPECT_TRUE(std::isnan(floats(call.workspace)[i]));
          floats(call.workspace)[i] = 1;
        }
      },
      64);
  // Seen by a last instruction, which changes nothing there.
  Arena arena(chain.schedule.arena_bytes);
  const auto look =
      chain.program.node("look", {chain.x}, {}, [&](const kernels::Call&, const auto&) {
        all_nan = true;
        for (int i = 0; i < 16; ++i) all_nan = all_nan && std::isnan(floats(workspace_at)[i]);
      });
  chain.schedule.instructions.push_back({look, {SlotId(0)}, {}, 0, 0});
  Executor executor(chain.program, chain.schedule, arena, {.debug = true});
  executor.write(chain.x, std::vector<std::byte>(64));
  executor.run({});
  EXPECT_TRUE(all_nan);
  // y's bytes now hold u, written after y was freed; x, read for the last time, is gone.
  std::vector<std::byte> entry;
  executor.capture_entry(entry);
  for (const std::byte byte : entry) EXPECT_EQ(byte, kFreed);
}

TEST(ExecutorDebug, AStepWithoutANewInputReadsNaN) {
  Chain chain(Chain::copy);
  Arena arena(chain.schedule.arena_bytes);
  Executor executor(chain.program, chain.schedule, arena, {.debug = true});
  executor.write(chain.x, std::vector<std::byte>(64));
  std::vector<float> z(16);
  executor.run({});
  executor.read(chain.z, std::as_writable_bytes(std::span(z)));
  EXPECT_EQ(z[0], 0);
  executor.run({});  // x was not written again
  executor.read(chain.z, std::as_writable_bytes(std::span(z)));
  EXPECT_TRUE(std::isnan(z[0]));
}

// x -> x' -> x'' in place through three slots of one offset.
TEST(ExecutorDebug, InPlaceChainsKeepOneAddressAndAreNotFreedOnTheWay) {
  FakeProgram program;
  const ValueId x = program.value("x", 16, Role::kInput);
  const ValueId y = program.value("y", 16);
  const ValueId z = program.value("z", 16);
  std::vector<const std::byte*> seen;
  const Kernel double_it = [&](const kernels::Call& call, const graph::StepContext&) {
    seen.push_back(call.inputs[0]);
    seen.push_back(call.outputs[0]);
    for (int i = 0; i < 16; ++i) floats(call.outputs[0])[i] = 2 * floats(call.inputs[0])[i];
  };
  const std::vector<graph::InplacePair> pair{{.input = 0, .output = 0}};
  const auto first = program.node("first", {x}, {y}, double_it, 0, pair);
  const auto second = program.node("second", {y}, {z}, double_it, 0, pair);
  program.prepared_graph().graph.outputs = {z};
  ScheduleWriter writer(program);
  const SlotId slot_x = writer.entry(x, 128);
  const SlotId slot_y = writer.slot(y, 128);
  const SlotId slot_z = writer.slot(z, 128);
  writer.run(first, {slot_x}, {slot_y});
  writer.run(second, {slot_y}, {slot_z});
  writer.exit(slot_z);
  Arena arena(192);
  Executor executor(program, writer.finish(), arena, {.debug = true});
  const std::vector<float> threes(16, 3);
  executor.write(x, std::as_bytes(std::span(threes)));
  executor.run({});
  std::vector<float> result(16);
  executor.read(z, std::as_writable_bytes(std::span(result)));
  EXPECT_EQ(result, std::vector<float>(16, 12));  // 3 * 2 * 2
  for (const std::byte* address : seen) EXPECT_EQ(address, seen[0]);
}

TEST(ExecutorDebug, AWrongScheduleIsRefusedSinceStretchingWouldHideIt) {
  Chain chain(Chain::copy);
  chain.schedule.slots[SlotId(3)].offset = 128;  // u over z, which is fetched
  Arena arena(chain.schedule.arena_bytes);
  try {
    Executor executor(chain.program, chain.schedule, arena, {.debug = true});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInput);
    EXPECT_NE(std::string(error.what()).find("the schedule is not correct (overlap)"),
              std::string::npos)
        << error.what();
  }
}

// Offsets 0..64 a, 64..192 b, and later 0..192 c over both:
//   boundaries 0, 64, 192 -> 64, 192, 384;  192 + 4 * 64 bytes in all
TEST(StretchedMap, LeavesSentinelsBeforeBetweenAndBehind) {
  FakeProgram program;
  const ValueId a = program.value("a", 16);
  const ValueId b = program.value("b", 32);
  const ValueId c = program.value("c", 48);
  ScheduleWriter writer(program);
  writer.slot(a, 0);
  writer.slot(b, 64);
  writer.slot(c, 0);
  const schedule::Schedule schedule = writer.finish();
  const StretchedMap map(schedule);
  EXPECT_EQ(map(0), 64);
  EXPECT_EQ(map(64), 192);  // a ends at 128: 64 bytes between
  EXPECT_EQ(map.bytes(), 192 + 4 * 64);
  EXPECT_GE(map.bytes() - (map(64) + 128), kSentinelBytes);
}

TEST(StretchedMap, KeepsNeighboursOfRandomSchedulesApart) {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    FakeProgram program;
    ScheduleWriter writer(program);
    for (std::uint32_t i = 0; i < 40; ++i) {
      const auto bits = graph::random_bits({.seed = seed}, 0, i);
      const auto count = static_cast<std::int64_t>(1 + (bits >> 8) % 100);
      writer.slot(program.value(fmt::format("v{}", i), count), 64 * static_cast<Bytes>(bits % 64));
    }
    const schedule::Schedule schedule = writer.finish();
    const StretchedMap map(schedule);
    for (const schedule::Slot& low : schedule.slots) {
      for (const schedule::Slot& high : schedule.slots) {
        if (low.offset + low.bytes > high.offset) continue;  // not neighbours: they share bytes
        EXPECT_GE(map(high.offset) - (map(low.offset) + low.bytes), kSentinelBytes)
            << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace reprise::runtime
