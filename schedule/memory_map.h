#pragma once

// The memory map: address against step, as an SVG that a person enjoys reading.

#include <optional>
#include <string>

#include "schedule/schedule.h"

namespace reprise::schedule {

struct MemoryMapOptions {
  std::string title;                    // "resnet20, batch 64, auto"
  std::optional<Bytes> budget_bytes{};  // drawn as a line
  std::optional<Bytes> floor_bytes{};   // drawn as a line
  int width = 1200;                     // pixels
  int height = 720;
  // Graphs with more slots than this are drawn with neighbouring rectangles of one category merged.
  std::size_t max_rectangles = 20000;
};

// Rectangles by category (parameter, optimizer state, state, input, activation, recomputed,
// gradient, workspace), a legend with the peak bytes of each, axes in bytes and instructions,
// phases marked, names and bytes on hover (<title>). Self-contained.
[[nodiscard]] std::string draw_memory_map(const graph::PreparedGraph& prepared,
                                          const Schedule& schedule,
                                          const MemoryMapOptions& options = {});

}  // namespace reprise::schedule
