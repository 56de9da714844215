#pragma once

// Constructive packing: items are placed one after the other and never moved again.

#include <cstdint>
#include <vector>

#include "planner/conflicts.h"

namespace reprise::planner {

struct Placement {
  std::vector<Bytes> offsets;  // per item
  Bytes arena = 0;
  bool too_large_to_search = false;  // too many pairs meet for anything but placement by time
};

// As an allocator would do it, without looking ahead: in order of time, each item takes the
// smallest free gap that holds it; longest first among those that start together. O(n log n).
// `backward` runs the clock from the end to the start.
[[nodiscard]] Placement place_by_time(const PackItems& problem, bool backward);

// In the given order, each item takes the smallest gap between the placed items that it meets, the
// lowest one among equals. O(pairs * log).
[[nodiscard]] Placement place_in_order(const PackItems& problem, const Conflicts& conflicts,
                                       const std::vector<std::int32_t>& order);

// The same for the items of `order` around all others, which have offsets; -1 for those without.
[[nodiscard]] Placement place_around(const PackItems& problem, const Conflicts& conflicts,
                                     std::vector<Bytes> offsets,
                                     const std::vector<std::int32_t>& order);

// Greedy orders: by size, by area and by length of life, largest first, and by start.
[[nodiscard]] std::vector<std::vector<std::int32_t>> greedy_orders(const PackItems& problem);

// place_in_order again and again: what ends up above the lower bound moves ahead in the order
// ("squeaky wheel", Joslin and Clements 1999). Returns the best of `rounds` placements.
[[nodiscard]] Placement place_with_feedback(const PackItems& problem, const Conflicts& conflicts,
                                            std::vector<std::int32_t> order, int rounds);

}  // namespace reprise::planner
