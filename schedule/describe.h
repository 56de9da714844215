#pragma once

// A schedule as a table for people: what `reprise show` prints.

#include <cstddef>
#include <string>

#include "schedule/schedule.h"

namespace reprise::schedule {

struct DescribeOptions {
  std::size_t instructions = 20;  // how many to list, from the first
  std::size_t largest = 8;        // how many of the largest slots at the peak
};

// Figures of the whole, bytes by use at the peak, the largest slots there, and the first
// instructions with what they do and how much is live. Ends with a newline.
[[nodiscard]] std::string describe(const graph::PreparedGraph& prepared, const Schedule& schedule,
                                   const DescribeOptions& options = {});

}  // namespace reprise::schedule
