// What surrounds the memory map: heading, axes, limits, phases, ribbon, legend.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "schedule/map_parts.h"

namespace reprise::schedule {

void draw_heading(SvgWriter& svg, const MapContext& map) {
  const double room = map.width - map.scale.left - 40;
  const std::string& title = map.options.title.empty() ? map.graph.name : map.options.title;
  svg.text(map.scale.left, 36, fit_text(title, 20, room), {.size = 20, .bold = true});
  std::string figures = base::format_bytes(map.schedule.arena_bytes) + " arena";
  const std::optional<Bytes> budget = map.options.budget_bytes;
  if (budget && *budget > map.scale.bytes) {
    figures += " of a budget of " + base::format_bytes(*budget);
  }
  const auto instructions = static_cast<double>(map.schedule.instructions.size());
  figures += fmt::format(" \xC2\xB7 {} instructions", group_digits(instructions));
  if (map.usage.recomputed > 0) {
    figures +=
        fmt::format(", {} recomputed", group_digits(static_cast<double>(map.usage.recomputed)));
  }
  if (instructions > 0) {
    figures += fmt::format(" \xC2\xB7 live peak {} in instruction {}, {}",
                           base::format_bytes(map.usage.peak()), map.usage.peak_step,
                           map.node_name(map.usage.peak_step));
  }
  svg.text(map.scale.left, 57, fit_text(figures, 12.5, room), {.size = 12.5, .colour = kQuiet});
}

void draw_grid(SvgWriter& svg, const MapContext& map) {
  const MapScale& scale = map.scale;
  svg.rect(scale.left, scale.top, scale.width, scale.height, "fill=\"#f7f8fa\"");
  const int rows = std::clamp(static_cast<int>(scale.height / 55), 3, 12);
  for (const Tick& tick : byte_ticks(scale.bytes, rows)) {
    const double y = scale.y(tick.value);
    svg.line(scale.left, y, map.right(), y, "stroke=\"#dfe3e8\"");
    svg.text(scale.left - 10, y + 4, tick.label, {.colour = kQuiet, .anchor = "end"});
  }
  const int columns = std::clamp(static_cast<int>(scale.width / 80), 2, 12);
  for (const Tick& tick : count_ticks(scale.steps, columns)) {
    const double x = scale.x(tick.value);
    svg.line(x, map.bottom() + 22, x, map.bottom() + 27, "stroke=\"#9aa3ad\"");
    svg.text(x, map.bottom() + 41, tick.label, {.colour = kQuiet, .anchor = "middle"});
  }
  svg.text(scale.left + scale.width / 2, map.bottom() + 63, "instruction",
           {.size = 12, .anchor = "middle"});
  svg.add(
      "<text x=\"20\" y=\"{0}\" font-size=\"12\" fill=\"{1}\" text-anchor=\"middle\" "
      "transform=\"rotate(-90 20 {0})\">address in the arena</text>\n",
      svg_number(scale.top + scale.height / 2), kInk);
}

// Lines first, then their labels on white plates, kept apart from each other.
void draw_limits(SvgWriter& svg, const MapContext& map) {
  struct Limit {
    std::optional<Bytes> bytes;
    const char* name;
    const char* colour;
  };
  std::vector<Limit> limits{{map.options.budget_bytes, "budget", "#c4320a"},
                            {map.options.floor_bytes, "floor", "#175cd3"}};
  std::erase_if(limits, [&](const Limit& limit) {
    return !limit.bytes || *limit.bytes > map.scale.bytes || *limit.bytes < 0;
  });
  std::stable_sort(limits.begin(), limits.end(),
                   [](const Limit& a, const Limit& b) { return *a.bytes > *b.bytes; });
  for (const Limit& limit : limits) {
    const double y = map.scale.y(static_cast<double>(*limit.bytes));
    svg.line(
        map.scale.left, y, map.right(), y,
        fmt::format("stroke=\"{}\" stroke-width=\"1.5\" stroke-dasharray=\"7 4\"", limit.colour));
  }
  double free_from = map.scale.top + 2;
  for (const Limit& limit : limits) {
    const double y = map.scale.y(static_cast<double>(*limit.bytes));
    const std::string words = fmt::format("{} {}", limit.name, base::format_bytes(*limit.bytes));
    const double width = text_width(words, 11) + 12;
    const double plate = std::max(y - 8.5, free_from);
    svg.rect(map.scale.left + 8, plate, width, 17,
             fmt::format("rx=\"3\" fill=\"#ffffff\" stroke=\"{}\"", limit.colour));
    svg.text(map.scale.left + 8 + width / 2, plate + 12.3, words,
             {.colour = limit.colour, .anchor = "middle"});
    free_from = plate + 20;
  }
}

namespace {

void draw_phase(SvgWriter& svg, const MapContext& map, std::int64_t start, std::int64_t end,
                std::string_view name) {
  const double x1 = map.scale.x(static_cast<double>(start));
  const double x2 = map.scale.x(static_cast<double>(end));
  const double y = map.scale.top - 9;
  if (x2 - x1 < 4) return;
  if (start > 0) {
    svg.line(x1, y - 8, x1, map.bottom() + 5, "stroke=\"#2b2f36\" stroke-dasharray=\"2 3\"");
  }
  const double width = text_width(name, 11.5) + 10;
  if (x2 - x1 < width + 4) return;
  svg.line(x1 + 3, y, x2 - 3, y, "stroke=\"#9aa3ad\"");
  svg.rect((x1 + x2 - width) / 2, y - 8, width, 16, "fill=\"#ffffff\"");
  svg.text((x1 + x2) / 2, y + 4, name, {.size = 11.5, .anchor = "middle"});
}

}  // namespace

// Forward up to the loss, update from after the last backward instruction.
void draw_phases(SvgWriter& svg, const MapContext& map) {
  const std::vector<Activity>& activities = map.usage.activities;
  if (activities.empty()) return;
  const auto last_backward =
      std::find(activities.rbegin(), activities.rend(), Activity::kBackward).base();
  const std::int64_t last = last_backward - activities.begin();
  const std::int64_t first =
      last == 0 ? map.scale.steps : std::min(last, end_of_forward(map.graph, map.schedule));
  draw_phase(svg, map, 0, first, "forward");
  draw_phase(svg, map, first, last, "backward");
  if (last > 0) draw_phase(svg, map, last, map.scale.steps, "update");
}

namespace {

constexpr std::array kActivities{Activity::kForward, Activity::kRecompute, Activity::kBackward,
                                 Activity::kUpdate};

std::string fill_of(Activity activity) {
  return fmt::format("fill=\"{}\"", colour_of(activity));
}

}  // namespace

// A strip under the map. In each column of at least a pixel the activities share its height by
// their number of instructions; a column of one instruction has one colour.
void draw_ribbon(SvgWriter& svg, const MapContext& map) {
  constexpr double kHeight = 12;
  const std::vector<Activity>& activities = map.usage.activities;
  const std::ptrdiff_t count = std::ssize(activities);
  const auto columns =
      std::min<std::ptrdiff_t>(count, static_cast<std::ptrdiff_t>(map.scale.width));
  using Shares = std::array<std::ptrdiff_t, 4>;
  const auto shares_of = [&](std::ptrdiff_t column) {
    Shares shares{};
    for (auto i = count * column / columns; i < count * (column + 1) / columns; ++i) {
      ++shares[static_cast<std::size_t>(activities[static_cast<std::size_t>(i)])];
    }
    return shares;
  };
  svg.add("<g shape-rendering=\"crispEdges\">\n");
  for (std::ptrdiff_t column = 0; column < columns;) {
    const Shares shares = shares_of(column);
    std::ptrdiff_t end = column + 1;  // columns alike are one
    while (end < columns && shares_of(end) == shares) ++end;
    const auto step_at = [&](std::ptrdiff_t c) {
      return map.scale.x(static_cast<double>(count * c / columns));
    };
    const double total = static_cast<double>(shares[0] + shares[1] + shares[2] + shares[3]);
    double y = map.bottom() + 8;
    for (Activity activity : kActivities) {
      const double height =
          kHeight * static_cast<double>(shares[static_cast<std::size_t>(activity)]) / total;
      if (height == 0) continue;
      svg.rect(step_at(column), y, step_at(end) - step_at(column), height, fill_of(activity),
               activity_name(activity));
      y += height;
    }
    column = end;
  }
  svg.add("</g>\n");
}

void draw_legend(SvgWriter& svg, const MapContext& map) {
  const double x = map.right() + 28;
  const double end = map.width - 8;
  int rows = 6;  // with the two titles, and the gap between them
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    rows += map.usage.peak_of(static_cast<Category>(c)) > 0 ? 1 : 0;
  }
  const double pitch = std::clamp((map.height - map.scale.top - 8) / (rows + 3), 14.0, 24.0);
  double y = map.scale.top + 4;
  const auto row = [&](std::string_view name, const std::string& figure) {
    svg.text(x + 22, y, name, {.size = 12});
    svg.text(end, y, figure, {.size = 12, .anchor = "end"});
  };
  const auto title = [&](std::string_view name, std::string_view figure) {
    svg.text(x, y, name, {.size = 12, .bold = true});
    svg.text(end, y, figure, {.colour = kQuiet, .anchor = "end"});
  };
  title("bytes by use", "peak");
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    const auto category = static_cast<Category>(c);
    if (map.usage.peak_of(category) == 0) continue;
    y += pitch;
    svg.rect(x, y - 11, 14, std::min(14.0, pitch - 2),
             fmt::format("rx=\"3\" fill=\"{}\"", paint_of(category).fill));
    row(category_name(category), base::format_bytes(map.usage.peak_of(category)));
  }
  if (map.schedule.instructions.empty()) return;
  y += pitch;
  svg.line(x, y - 4, x + 14, y - 4, "stroke=\"#1b1e23\" stroke-width=\"1.6\"");
  row("live sum", base::format_bytes(map.usage.peak()));
  y += 1.6 * pitch;
  title("instructions", "count");
  const std::vector<Activity>& activities = map.usage.activities;
  for (Activity activity : kActivities) {
    const auto count = std::count(activities.begin(), activities.end(), activity);
    if (count == 0) continue;
    y += pitch;
    svg.rect(x, y - 8.5, 14, 9, "rx=\"2\" " + fill_of(activity));
    row(activity_name(activity), group_digits(static_cast<double>(count)));
  }
}

}  // namespace reprise::schedule
