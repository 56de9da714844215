#pragma once

// The parts of the memory map, and what they share.

#include <algorithm>
#include <vector>

#include "schedule/map_boxes.h"
#include "schedule/memory_map.h"
#include "schedule/svg.h"
#include "schedule/usage.h"

namespace reprise::schedule {

inline constexpr const char* kInk = "#2b2f36";
inline constexpr const char* kQuiet = "#6b7280";
inline constexpr const char* kEdge = "#9aa3ad";

struct Paint {
  const char* fill;
  const char* text;  // readable on the fill
};
[[nodiscard]] Paint paint_of(Category category);
[[nodiscard]] const char* colour_of(Activity activity);

struct MapContext {
  const graph::Graph& graph;
  const Schedule& schedule;
  const MemoryMapOptions& options;
  Usage usage;
  std::vector<Box> boxes;
  double width = 0, height = 0;  // of the picture
  MapScale scale;                // of the map in it

  [[nodiscard]] double right() const { return scale.left + scale.width; }
  [[nodiscard]] double bottom() const { return scale.top + scale.height; }
  [[nodiscard]] const std::string& node_name(std::int64_t instruction) const {
    return graph.nodes[schedule.instructions[static_cast<std::size_t>(instruction)].node].name;
  }
};

// Rectangles, their names, the curve of the live sum.
void draw_map_body(SvgWriter& svg, const MapContext& map);
// What surrounds it: title and figures, grid and axes, budget and floor, phases, ribbon.
void draw_heading(SvgWriter& svg, const MapContext& map);
void draw_grid(SvgWriter& svg, const MapContext& map);
void draw_limits(SvgWriter& svg, const MapContext& map);
void draw_phases(SvgWriter& svg, const MapContext& map);
void draw_ribbon(SvgWriter& svg, const MapContext& map);
void draw_legend(SvgWriter& svg, const MapContext& map);

inline constexpr double kLegendWidth = 208;

}  // namespace reprise::schedule
