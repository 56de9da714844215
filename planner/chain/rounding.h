#pragma once

// Costs as floats that compare fast. They lie on the safe side by some units of the last place, so
// that sums of three of them, rounded as they may be, do too.

#include <cstdint>

namespace reprise::planner {

[[nodiscard]] inline float round_down(std::int64_t cost) {
  return static_cast<float>(static_cast<double>(cost) * (1 - 0x1p-20));
}
[[nodiscard]] inline float round_up(std::int64_t cost) {
  return static_cast<float>(static_cast<double>(cost) * (1 + 0x1p-20));
}

}  // namespace reprise::planner
