#pragma once

// All ways to pack one problem, cheap ones first, until an arena is small enough or the effort is
// spent.

#include <cstdint>
#include <functional>

#include "planner/placement.h"

namespace reprise::planner {

struct PortfolioLimits {
  Bytes enough = 0;        // stop at an arena of this size
  std::int64_t steps = 0;  // effort: elementary steps, about a nanosecond each
  std::function<bool()> stop{};
};

[[nodiscard]] Placement pack_items(const PackItems& problem, const PortfolioLimits& limits);

}  // namespace reprise::planner
