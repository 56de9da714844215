#include "schedule/input_windows.h"

#include <algorithm>

namespace reprise::schedule {
namespace {

bool meet(Bytes begin, Bytes bytes, const Slot& slot) {
  return bytes > 0 && slot.bytes > 0 && begin < slot.offset + slot.bytes &&
         slot.offset < begin + bytes;
}

bool touches(const Schedule& schedule, const Instruction& instruction, const Slot& slot) {
  const auto met = [&](SlotId other) {
    return meet(schedule.slots[other].offset, schedule.slots[other].bytes, slot);
  };
  return std::ranges::any_of(instruction.reads, met) ||
         std::ranges::any_of(instruction.writes, met) ||
         meet(instruction.workspace_offset, instruction.workspace_bytes, slot);
}

}  // namespace

std::vector<InputWindow> input_windows(const graph::Graph& graph, const Schedule& schedule) {
  std::vector<InputWindow> windows;
  for (const SlotId id : schedule.entry) {
    const Slot& slot = schedule.slots[id];
    if (graph.values[slot.value].role != graph::Role::kInput) continue;
    InputWindow window{id};
    const bool needed_after = std::ranges::any_of(schedule.exit, [&](SlotId other) {
      return meet(schedule.slots[other].offset, schedule.slots[other].bytes, slot);
    });
    if (!needed_after) {
      std::size_t last = schedule.instructions.size();
      while (last > 0 && !touches(schedule, schedule.instructions[last - 1], slot)) --last;
      window.last_use = last == 0 ? 0 : last - 1;
    }
    windows.push_back(window);
  }
  return windows;
}

}  // namespace reprise::schedule
