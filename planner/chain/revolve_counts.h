#pragma once

#include <cstdint>

namespace reprise::planner {

// Griewank and Walther 2000: n equal steps, c checkpoints, the initial state in one of them, a step
// recorded only to be gone back over at once.
struct RevolveCounts {
  std::int64_t repetitions = 0;     // r, the least with C(c + r, c) >= n
  std::int64_t extra_forwards = 0;  // r n - C(c + r, c + 1): advances that record nothing
};

// Throws Error(kInput) unless steps and checkpoints are positive. Saturates at 2^63 - 1.
[[nodiscard]] RevolveCounts revolve_counts(std::int64_t steps, std::int64_t checkpoints);

}  // namespace reprise::planner
