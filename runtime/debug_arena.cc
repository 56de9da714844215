#include "runtime/debug_arena.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"

namespace reprise::runtime {

using schedule::Instruction;
using schedule::SlotId;

StretchedMap::StretchedMap(const schedule::Schedule& schedule) {
  const auto add = [&](Bytes offset, Bytes bytes) {
    boundaries_.push_back(offset);
    boundaries_.push_back(offset + bytes);
  };
  for (const schedule::Slot& slot : schedule.slots) add(slot.offset, slot.bytes);
  for (const Instruction& instruction : schedule.instructions) {
    if (instruction.workspace_bytes > 0) {
      add(instruction.workspace_offset, instruction.workspace_bytes);
    }
  }
  std::sort(boundaries_.begin(), boundaries_.end());
  boundaries_.erase(std::unique(boundaries_.begin(), boundaries_.end()), boundaries_.end());
  bytes_ = schedule.arena_bytes + kSentinelBytes * (static_cast<Bytes>(boundaries_.size()) + 1);
}

Bytes StretchedMap::operator()(Bytes offset) const {
  const auto above = std::upper_bound(boundaries_.begin(), boundaries_.end(), offset);
  return offset + kSentinelBytes * static_cast<Bytes>(above - boundaries_.begin());
}

DebugArena::DebugArena(const graph::PreparedGraph& prepared, const schedule::Schedule& schedule,
                       const std::shared_ptr<kernels::DeviceMemory>& device)
    : prepared_(prepared),
      schedule_(schedule),
      map_(schedule),
      arena_(map_.bytes(), device),
      on_device_(device != nullptr),
      expected_(static_cast<std::size_t>(map_.bytes()), kFreed),
      lifetimes_(schedule::slot_lifetimes(schedule)),
      last_uses_(schedule.instructions.size()) {
  arena_.write(arena_.data(), expected_);
  std::vector<bool> kept(schedule.slots.size(), false);
  for (const SlotId slot : schedule.exit) kept[slot.index()] = true;
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    const auto end = static_cast<std::size_t>(lifetimes_[SlotId(i)].end);
    if (!kept[i] && end > 0 && end <= last_uses_.size()) last_uses_[end - 1].push_back(SlotId(i));
  }
}

DebugArena::Range DebugArena::range(Bytes offset, Bytes bytes) const {
  const Bytes begin = map_(offset);
  return {begin, begin + bytes};
}

DebugArena::Range DebugArena::slot_range(SlotId slot) const {
  return range(schedule_.slots[slot].offset, schedule_.slots[slot].bytes);
}

const std::byte* DebugArena::look() {
  if (!on_device_) return arena_.data();
  seen_.resize(static_cast<std::size_t>(arena_.bytes()));
  arena_.read(arena_.data(), seen_);
  return seen_.data();
}

void DebugArena::begin_step() {
  const std::byte* const held_bytes = look();
  std::fill(expected_.begin(), expected_.end(), kFreed);
  for (const SlotId slot : schedule_.entry) {
    const Range held = slot_range(slot);
    std::copy(held_bytes + held.begin, held_bytes + held.end, expected_.begin() + held.begin);
  }
  arena_.write(arena_.data(), expected_);
}

std::vector<DebugArena::Range> DebugArena::written_ranges(std::size_t index) const {
  const Instruction& instruction = schedule_.instructions[index];
  std::vector<Range> ranges;
  for (const SlotId slot : instruction.writes) ranges.push_back(slot_range(slot));
  if (instruction.workspace_bytes > 0) {
    ranges.push_back(range(instruction.workspace_offset, instruction.workspace_bytes));
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return ranges;
}

void DebugArena::end_instruction(std::size_t index) {
  const Instruction& instruction = schedule_.instructions[index];
  const std::byte* const held = look();
  Bytes checked = 0;
  for (const Range& written : written_ranges(index)) {
    compare(index, held, checked, written.begin);
    checked = std::max(checked, written.end);
  }
  compare(index, held, checked, arena_.bytes());

  for (const SlotId slot : instruction.writes) {
    const Range written = slot_range(slot);
    std::copy(held + written.begin, held + written.end, expected_.begin() + written.begin);
  }
  if (instruction.workspace_bytes > 0) {
    free(range(instruction.workspace_offset, instruction.workspace_bytes));
  }
  // What was read for the last time, but for bytes that a write has taken in place; and what was
  // written for nobody.
  for (const SlotId slot : last_uses_[index]) {
    const auto same_bytes = [&](SlotId written) {
      return written != slot && schedule_.slots[written].offset == schedule_.slots[slot].offset &&
             schedule_.slots[slot].bytes > 0;
    };
    if (std::none_of(instruction.writes.begin(), instruction.writes.end(), same_bytes)) {
      free(slot_range(slot));
    }
  }
}

void DebugArena::compare(std::size_t index, const std::byte* held, Bytes begin, Bytes end) const {
  if (begin >= end) return;
  const std::byte* found = held + begin;
  const auto expected = expected_.begin() + begin;
  if (std::memcmp(found, &*expected, static_cast<std::size_t>(end - begin)) == 0) return;
  const std::byte* const last = found + (end - begin);
  report(index, begin + (std::mismatch(found, last, expected).first - found));
}

void DebugArena::free(Range freed) {
  arena_.fill(arena_.data() + freed.begin, kFreed, freed.end - freed.begin);
  std::fill(expected_.begin() + freed.begin, expected_.begin() + freed.end, kFreed);
}

void DebugArena::report(std::size_t index, Bytes at) const {
  const Instruction& instruction = schedule_.instructions[index];
  throw base::Error(base::ErrorKind::kInternal,
                    fmt::format("instruction {} (node '{}') changed {}", index,
                                prepared_.graph.nodes[instruction.node].name, describe(index, at)));
}

// The byte in terms of a live slot that holds it, or else of the nearest thing the instruction
// writes.
std::string DebugArena::describe(std::size_t index, Bytes at) const {
  const auto name = [&](SlotId slot) {
    return fmt::format("slot {} ('{}', {} bytes)", slot.index(),
                       prepared_.graph.values[schedule_.slots[slot].value].name,
                       schedule_.slots[slot].bytes);
  };
  const auto now = static_cast<std::int64_t>(index);
  for (std::size_t i = 0; i < schedule_.slots.size(); ++i) {
    const Range held = slot_range(SlotId(i));
    if (lifetimes_[SlotId(i)].start <= now && now < lifetimes_[SlotId(i)].end && held.begin <= at &&
        at < held.end) {
      return fmt::format("byte {} of {}, which it does not write", at - held.begin,
                         name(SlotId(i)));
    }
  }
  std::string text = "a byte outside of all live slots";
  std::optional<Bytes> nearest;
  const auto consider = [&](const Range& written, const std::string& what) {
    const bool behind = at >= written.end;
    const Bytes distance = behind ? at - written.end : written.begin - at;
    if (nearest && *nearest <= distance) return;
    nearest = distance;
    text = behind ? fmt::format("byte {} behind the end of {}", distance, what)
                  : fmt::format("the byte {} before the start of {}", distance, what);
  };
  const Instruction& instruction = schedule_.instructions[index];
  for (const SlotId slot : instruction.writes) consider(slot_range(slot), name(slot));
  if (instruction.workspace_bytes > 0) {
    consider(range(instruction.workspace_offset, instruction.workspace_bytes),
             fmt::format("its workspace ({} bytes)", instruction.workspace_bytes));
  }
  return text;
}

}  // namespace reprise::runtime
