#pragma once

// From when on the bytes of an input may take the next step's data, while a step still runs.

#include <optional>
#include <vector>

#include "schedule/schedule.h"

namespace reprise::schedule {

struct InputWindow {
  SlotId slot;  // an entry slot that holds an input
  // The last instruction that reads or writes any of the slot's bytes, for whatever value they then
  // hold; nothing where those bytes are still needed when the step is over (an exit slot).
  std::optional<std::size_t> last_use{};
};

// In the order of Schedule::entry. Inputs that no instruction touches may be written at once
// (last_use 0).
[[nodiscard]] std::vector<InputWindow> input_windows(const graph::Graph& graph,
                                                     const Schedule& schedule);

}  // namespace reprise::schedule
