// The inside of the memory map.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "schedule/map_parts.h"

namespace reprise::schedule {
namespace {

struct Pixels {
  double x, y, width, height;
};

Pixels pixels_of(const MapScale& scale, const Box& box) {
  const double x = scale.x(static_cast<double>(box.steps.start));
  const double y = scale.y(static_cast<double>(box.end));
  return {x, y, scale.x(static_cast<double>(box.steps.end)) - x,
          scale.y(static_cast<double>(box.begin)) - y};
}

double area(const Box& box) {
  return static_cast<double>(box.steps.end - box.steps.start) *
         static_cast<double>(box.end - box.begin);
}

// The boxes to draw one by one, largest first, and the rest, which is joined.
struct Split {
  std::vector<Box> single, joined;
};

Split split_boxes(const MapContext& map) {
  // Below this many, everything has a name to hover over.
  constexpr std::size_t kAlwaysSingle = 3000;
  const std::size_t most = map.options.max_rectangles;
  Split split;
  split.single = map.boxes;
  std::stable_sort(split.single.begin(), split.single.end(),
                   [](const Box& a, const Box& b) { return area(a) > area(b); });
  if (split.single.size() <= std::min(kAlwaysSingle, most)) return split;
  const auto visible = [&](const Box& box) {
    const Pixels at = pixels_of(map.scale, box);
    return at.width >= 0.75 && at.height >= 0.75;
  };
  auto rest = std::stable_partition(split.single.begin(), split.single.end(), visible);
  if (static_cast<std::size_t>(rest - split.single.begin()) > most) {
    rest = split.single.begin() + static_cast<std::ptrdiff_t>(most);
  }
  split.joined.assign(rest, split.single.end());
  split.single.erase(rest, split.single.end());
  return split;
}

std::string hover(const MapContext& map, const Box& box) {
  const std::string bytes = base::format_bytes(box.end - box.begin);
  if (!box.slot.valid()) {
    return fmt::format("workspace of {}, {} at {}, instruction {}", map.node_name(box.instruction),
                       bytes, box.begin, box.instruction);
  }
  return fmt::format("{} ({}), {} at {}, instructions {} to {}",
                     map.graph.values[map.schedule.slots[box.slot].value].name,
                     category_name(box.category), bytes, box.begin, box.steps.start,
                     box.steps.end - 1);
}

void draw_joined(SvgWriter& svg, const MapContext& map, const std::vector<Box>& boxes) {
  if (boxes.empty()) return;
  const std::vector<std::string> paths = merge_boxes(boxes, map.scale);
  svg.add("<g transform=\"translate({} {})\" shape-rendering=\"crispEdges\">\n",
          svg_number(map.scale.left), svg_number(map.scale.top));
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    if (paths[c].empty()) continue;
    const auto category = static_cast<Category>(c);
    svg.add("<path fill=\"{}\" d=\"{}\"><title>small slots: {}</title></path>\n",
            paint_of(category).fill, paths[c], category_name(category));
  }
  svg.add("</g>\n");
}

void draw_box(SvgWriter& svg, const MapContext& map, const Box& box) {
  const Pixels at = pixels_of(map.scale, box);
  const double width = std::max(at.width, 0.3);
  const double height = std::max(at.height, 0.3);
  // A white edge parts neighbours, unless it would eat them.
  const double edge = std::min(1.0, std::min(at.width, at.height) / 8);
  const std::string stroke =
      edge < 0.1 ? "stroke=\"none\"" : fmt::format("stroke-width=\"{}\"", svg_number(edge));
  svg.rect(at.x, at.y, width, height, stroke, hover(map, box));
}

// Grouped by category, so that colours are said once.
void draw_single(SvgWriter& svg, const MapContext& map, std::vector<Box> boxes) {
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const Box& a, const Box& b) { return a.category < b.category; });
  for (std::size_t i = 0; i < boxes.size();) {
    const Category category = boxes[i].category;
    svg.add("<g fill=\"{}\" stroke=\"#ffffff\">\n", paint_of(category).fill);
    for (; i < boxes.size() && boxes[i].category == category; ++i) draw_box(svg, map, boxes[i]);
    svg.add("</g>\n");
  }
}

// Names on the boxes that have room for them; `boxes` are the largest first.
void draw_names(SvgWriter& svg, const MapContext& map, const std::vector<Box>& boxes) {
  constexpr double kSize = 10.5;
  int left = 120;  // more would be noise
  for (const Box& box : boxes) {
    const Pixels at = pixels_of(map.scale, box);
    if (at.width < 22 || at.height < 14) continue;
    const std::string name =
        box.slot.valid() ? map.graph.values[map.schedule.slots[box.slot].value].name : "workspace";
    const double room = at.width - 11;
    if (text_width(name, kSize) > room && room < 80) continue;
    svg.text(at.x + 6, at.y + at.height / 2 + 3.7, fit_text(name, kSize, room),
             {.size = kSize, .colour = paint_of(box.category).text});
    if (--left == 0) return;
  }
}

// Where this curve is below the top of the boxes, bytes lie idle between them.
void draw_live_sum(SvgWriter& svg, const MapContext& map) {
  if (map.schedule.instructions.empty()) return;
  const std::vector<Bytes>& live = map.usage.live_bytes;
  const auto stride = std::max<std::ptrdiff_t>(
      1, static_cast<std::ptrdiff_t>(static_cast<double>(live.size()) / map.scale.width));
  std::string path;
  for (std::ptrdiff_t step = 0; step < std::ssize(live); step += stride) {
    const std::ptrdiff_t end = std::min(step + stride, std::ssize(live));
    const Bytes most = *std::max_element(live.begin() + step, live.begin() + end);
    path += fmt::format("{}{} {}H{}", step == 0 ? "M" : "L",
                        svg_number(map.scale.x(static_cast<double>(step))),
                        svg_number(map.scale.y(static_cast<double>(most))),
                        svg_number(map.scale.x(static_cast<double>(end))));
  }
  svg.add("<g fill=\"none\" stroke-linejoin=\"round\" pointer-events=\"none\">\n");
  svg.add("<path d=\"{}\" stroke=\"#ffffff\" stroke-width=\"3\" opacity=\"0.7\"/>\n", path);
  svg.add("<path d=\"{}\" stroke=\"#1b1e23\" stroke-width=\"1.3\"/>\n</g>\n", path);
}

}  // namespace

void draw_map_body(SvgWriter& svg, const MapContext& map) {
  const Split split = split_boxes(map);
  draw_joined(svg, map, split.joined);
  draw_single(svg, map, split.single);
  svg.add("<g pointer-events=\"none\">\n");
  draw_names(svg, map, split.single);
  svg.add("</g>\n");
  draw_live_sum(svg, map);
}

}  // namespace reprise::schedule
