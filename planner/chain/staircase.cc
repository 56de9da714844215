#include "planner/chain/staircase.h"

#include <algorithm>

#include "planner/chain/rounding.h"

namespace reprise::planner {

const StairStep* step_within(const Staircase& stairs, Bytes memory) {
  const auto after = std::upper_bound(stairs.begin(), stairs.end(), memory,
                                      [](Bytes m, const StairStep& s) { return m < s.memory; });
  return after == stairs.begin() ? nullptr : &*std::prev(after);
}

Staircase thin_out(const Staircase& stairs, std::size_t most) {
  if (stairs.size() <= most || most < 3) return stairs;
  const auto value = [](Bytes b) { return static_cast<double>(b); };
  Staircase result = {stairs.front()};
  const double low = value(stairs.front().memory);
  const double width = (value(stairs.back().memory) - low) / static_cast<double>(most - 2);
  const auto bucket = [&](std::size_t i) {
    return static_cast<std::int64_t>((value(stairs[i].memory) - low) / width);
  };
  const std::size_t last = stairs.size() - 1;
  for (std::size_t i = 1, end = 1; i < last; i = end) {
    while (end < last && bucket(end) == bucket(i)) ++end;
    const StairStep& before = stairs[i - 1];
    const StairStep& after = stairs[end];
    const double slope = value(before.cost - after.cost) / value(after.memory - before.memory);
    std::size_t best = i;
    const auto height = [&](const StairStep& s) {
      return value(s.cost) + slope * value(s.memory - before.memory);
    };
    for (std::size_t k = i; k < end; ++k) {
      if (height(stairs[k]) < height(stairs[best])) best = k;
    }
    result.push_back(stairs[best]);
  }
  result.push_back(stairs[last]);
  return result;
}

CellStaircase::CellStaircase(Staircase stairs, const MemoryCells& cells)
    : steps(std::move(stairs)) {
  if (steps.empty()) return;
  first_cell = cells.of(steps.front().memory);
  const std::int32_t last_cell = cells.of(steps.back().memory);
  const auto count = static_cast<std::size_t>(last_cell - first_cell) + 1;
  least.reserve(count);
  before.reserve(count);
  std::size_t i = 0;
  for (std::int32_t cell = first_cell; cell <= last_cell; ++cell) {
    before.push_back(static_cast<std::uint32_t>(i));
    const Bytes end = cells.begin(cell + 1);
    while (i < steps.size() && steps[i].memory < end) ++i;
    least.push_back(round_down(steps[i - 1].cost));
  }
}

}  // namespace reprise::planner
