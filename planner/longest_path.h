#pragma once

#include <vector>

#include "planner/structure.h"

namespace reprise::planner {

// Ops of [first, last) of which every execution runs each for the first time before the next one
// runs for the first time: in a fixed order all of them, else the most required ops that follow
// from each other along the data. Ascending. O(ops + arities).
[[nodiscard]] std::vector<Index> longest_path(const Structure& structure, Index first, Index last);

}  // namespace reprise::planner
