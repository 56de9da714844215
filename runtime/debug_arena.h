#pragma once

// The arena of the executor's debug mode: slots spread out with sentinel bytes between them, freed
// bytes filled with NaN, and a second copy that shows which instruction changed what it must not.
//
//   schedule's offsets   |  a   |  b   |      c      |      (c is live after a and b)
//   stretched         ###|  a   |###|  b   |######
//                     ###|  c ...          |######
//
// Each offset at which a slot or workspace starts or ends (a boundary) moves up by kSentinelBytes
// per boundary at or below it. The map is monotone, so what did not overlap does not overlap now;
// slots of one offset (in-place pairs) keep one address; and between the end of a slot and the
// start of the next lies at least one boundary more, hence at least kSentinelBytes. A slot that
// spans boundaries of others keeps its size, and the room it leaves widens the gap behind it.

#include <cstddef>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "graph/prepared.h"
#include "runtime/arena.h"
#include "schedule/schedule.h"

namespace reprise::runtime {

inline constexpr Bytes kSentinelBytes = graph::kArenaAlignment;
inline constexpr std::byte kFreed{0xFF};  // f32, f64: a NaN; i32: -1; u8: 255

// From offsets of the schedule to offsets of the stretched arena.
class StretchedMap {
 public:
  explicit StretchedMap(const schedule::Schedule& schedule);
  // `offset` must be one at which a slot or workspace starts.
  [[nodiscard]] Bytes operator()(Bytes offset) const;
  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  std::vector<Bytes> boundaries_;  // sorted, distinct
  Bytes bytes_ = 0;
};

class DebugArena {
 public:
  // Both must outlive it. With `device` it lies there, and each instruction is waited for.
  DebugArena(const graph::PreparedGraph& prepared, const schedule::Schedule& schedule,
             const std::shared_ptr<kernels::DeviceMemory>& device);

  [[nodiscard]] std::byte* address(Bytes offset) { return arena_.data() + map_(offset); }
  [[nodiscard]] Arena& arena() { return arena_; }

  // Frees all but the entry slots.
  void begin_step();
  // After instruction `index` ran: throws Error(kInternal) when a byte changed that it does not
  // write, then frees its workspace and what it was the last to read.
  void end_instruction(std::size_t index);

 private:
  struct Range {  // of the stretched arena, half-open
    Bytes begin = 0;
    Bytes end = 0;
  };
  [[nodiscard]] Range range(Bytes offset, Bytes bytes) const;
  [[nodiscard]] Range slot_range(schedule::SlotId slot) const;
  [[nodiscard]] std::vector<Range> written_ranges(std::size_t index) const;
  // What the arena holds now, in host memory.
  [[nodiscard]] const std::byte* look();
  void compare(std::size_t index, const std::byte* held, Bytes begin, Bytes end) const;
  void free(Range freed);
  [[noreturn]] void report(std::size_t index, Bytes at) const;
  [[nodiscard]] std::string describe(std::size_t index, Bytes at) const;

  const graph::PreparedGraph& prepared_;
  const schedule::Schedule& schedule_;
  StretchedMap map_;
  Arena arena_;
  bool on_device_;
  std::vector<std::byte> seen_;      // on a device: the last look()
  std::vector<std::byte> expected_;  // what arena_ must hold outside of an instruction's writes
  base::IdVector<schedule::SlotId, schedule::Lifetime> lifetimes_;
  std::vector<std::vector<schedule::SlotId>> last_uses_;  // per instruction: slots that end with it
};

}  // namespace reprise::runtime
