#include "schedule/memory_map.h"

#include <algorithm>

#include "schedule/map_parts.h"

// The picture, from the top: title and figures; the names of the phases; the map itself, in which a
// rectangle is a slot and its area bytes times steps; a ribbon that shows what each instruction
// does; the axis of steps. At the right the legend. Colours are Paul Tol's "bright" scheme, which
// stays apart for colour-blind readers; what is recomputed is hatched as well.

namespace reprise::schedule {
namespace {

// The arena, and a budget or floor above it when that is near enough to be worth the room.
Bytes shown_bytes(const Schedule& schedule, const std::vector<Box>& boxes,
                  const MemoryMapOptions& options) {
  Bytes high = std::max<Bytes>(schedule.arena_bytes, 1);
  for (const Box& box : boxes) high = std::max(high, box.end);
  Bytes shown = high;
  for (const auto& limit : {options.budget_bytes, options.floor_bytes}) {
    if (limit && *limit / 3 <= high / 2) shown = std::max(shown, *limit);
  }
  return shown + std::min(shown / 24 + 1, Bytes{1} << 60);
}

MapContext make_context(const graph::PreparedGraph& prepared, const Schedule& schedule,
                        const MemoryMapOptions& options) {
  constexpr double kLeft = 92, kTop = 92, kUnder = 84, kGap = 44;
  MapContext map{.graph = prepared.graph,
                 .schedule = schedule,
                 .options = options,
                 .usage = measure_usage(prepared, schedule),
                 .boxes = {},
                 .width = static_cast<double>(std::max(options.width, 640)),
                 .height = static_cast<double>(std::max(options.height, 400)),
                 .scale = {}};
  map.boxes = collect_boxes(schedule, map.usage);
  map.scale = {.left = kLeft,
               .top = kTop,
               .width = map.width - kLeft - kGap - kLegendWidth,
               .height = map.height - kTop - kUnder,
               .steps = std::max<std::int64_t>(std::ssize(schedule.instructions), 1),
               .bytes = shown_bytes(schedule, map.boxes, options)};
  return map;
}

void open_picture(SvgWriter& svg, const MapContext& map) {
  svg.add(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"Inter, Helvetica Neue, Helvetica, Arial, Liberation Sans, "
      "sans-serif\">\n",
      map.width, map.height);
  svg.add(
      "<defs><pattern id=\"again\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#ee6677\"/>"
      "<rect width=\"2\" height=\"6\" fill=\"#f6a3ad\"/></pattern></defs>\n");
  svg.rect(0, 0, map.width, map.height, "fill=\"#ffffff\"");
}

}  // namespace

Paint paint_of(Category category) {
  switch (category) {
    case Category::kParameter:
      return {"#4477aa", "#ffffff"};
    case Category::kOptimizerState:
      return {"#66ccee", "#10303c"};
    case Category::kState:
      return {"#b4b9c1", "#22262b"};
    case Category::kInput:
      return {"#228833", "#ffffff"};
    case Category::kActivation:
      return {"#ddcc66", "#3a3410"};
    case Category::kRecomputed:
      return {"url(#again)", "#4a0f18"};
    case Category::kGradient:
      return {"#aa3377", "#ffffff"};
    case Category::kWorkspace:
      return {"#5c6470", "#ffffff"};
  }
  return {"#000000", "#ffffff"};
}

const char* colour_of(Activity activity) {
  switch (activity) {
    case Activity::kForward:
      return "#ddcc66";
    case Activity::kRecompute:
      return "#ee6677";
    case Activity::kBackward:
      return "#aa3377";
    case Activity::kUpdate:
      return "#4477aa";
  }
  return "#000000";
}

std::string draw_memory_map(const graph::PreparedGraph& prepared, const Schedule& schedule,
                            const MemoryMapOptions& options) {
  const MapContext map = make_context(prepared, schedule, options);
  SvgWriter svg;
  open_picture(svg, map);
  draw_heading(svg, map);
  draw_grid(svg, map);
  draw_map_body(svg, map);
  draw_phases(svg, map);
  draw_limits(svg, map);
  draw_ribbon(svg, map);
  draw_legend(svg, map);
  svg.add("</svg>\n");
  return svg.take();
}

}  // namespace reprise::schedule
