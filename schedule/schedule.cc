#include "schedule/schedule.h"

#include <algorithm>

#include "base/error.h"

namespace reprise::schedule {

base::IdVector<SlotId, Lifetime> slot_lifetimes(const Schedule& schedule) {
  const auto steps = static_cast<std::int64_t>(schedule.instructions.size());
  base::IdVector<SlotId, Lifetime> lifetimes(schedule.slots.size());
  const auto at = [&](SlotId slot) -> Lifetime& {
    REPRISE_CHECK(lifetimes.contains(slot), "slot {} of {}", slot.index(), lifetimes.size());
    return lifetimes[slot];
  };
  for (SlotId slot : schedule.entry) at(slot) = {0, std::int64_t{1}};
  for (std::int64_t step = 0; step < steps; ++step) {
    const Instruction& instruction = schedule.instructions[static_cast<std::size_t>(step)];
    for (SlotId slot : instruction.reads) at(slot).end = std::max(at(slot).end, step + 1);
    for (SlotId slot : instruction.writes) at(slot) = {step, step + 1};
  }
  for (SlotId slot : schedule.exit) at(slot).end = std::max<std::int64_t>(steps, 1);
  return lifetimes;
}

}  // namespace reprise::schedule
