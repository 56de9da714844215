#pragma once

// The rectangles of a memory map: steps across, bytes up.

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "schedule/usage.h"

namespace reprise::schedule {

// A slot, or the workspace of one instruction.
struct Box {
  Category category{};
  Lifetime steps;   // [start, end)
  Bytes begin = 0;  // [begin, end)
  Bytes end = 0;
  SlotId slot{};                  // invalid for a workspace
  std::int64_t instruction = -1;  // of a workspace
};

// Every used slot and workspace with bytes.
[[nodiscard]] std::vector<Box> collect_boxes(const Schedule& schedule, const Usage& usage);

// The drawing area: pixels per step and per byte.
struct MapScale {
  double left = 0, top = 0, width = 1, height = 1;  // pixels
  std::int64_t steps = 1;
  Bytes bytes = 1;

  [[nodiscard]] double x(double step) const {
    return left + width * step / static_cast<double>(steps);
  }
  [[nodiscard]] double y(double address) const {
    return top + height * (1 - address / static_cast<double>(bytes));
  }
};

// Many small boxes as a few: one SVG path per category, in which neighbouring cells of a grid of
// pixels are joined. Empty strings for categories without boxes.
[[nodiscard]] std::vector<std::string> merge_boxes(const std::vector<Box>& boxes,
                                                   const MapScale& scale);

}  // namespace reprise::schedule
