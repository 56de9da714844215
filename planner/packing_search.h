#pragma once

// Exact packing within a capacity, by depth-first search over canonical packings.

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/conflicts.h"

namespace reprise::planner {

struct PackingSearch {
  // Offsets of a packing within the capacity, when one was found.
  std::optional<std::vector<Bytes>> offsets;
  bool exhausted = false;  // the whole space was seen: without offsets, none exists
  std::int64_t nodes = 0;  // placements tried
};

// Stops after `node_limit` placements. O(items + sections) a placement. `order` ranks the items
// among which the search has a choice.
[[nodiscard]] PackingSearch search_packing(const PackItems& problem, const Conflicts& conflicts,
                                           const std::vector<std::int32_t>& order, Bytes capacity,
                                           std::int64_t node_limit);

}  // namespace reprise::planner
