#include "planner/chain/revolve_counts.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace reprise::planner {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr Wide kMost = static_cast<Wide>(1) << 100;

// C(a, b), at most kMost. Each partial product is a binomial itself, so divisions leave no rest.
Wide binomial(std::int64_t a, std::int64_t b) {
  b = std::min(b, a - b);
  if (b < 0) return 0;
  Wide result = 1;
  for (std::int64_t i = 1; i <= b; ++i) {
    const auto factor = static_cast<Wide>(a - b + i);
    if (result > kMost / factor) return kMost;
    result = result * factor / static_cast<Wide>(i);
  }
  return result;
}

}  // namespace

RevolveCounts revolve_counts(std::int64_t steps, std::int64_t checkpoints) {
  if (steps <= 0 || checkpoints <= 0) {
    throw base::input_error("revolve: {} steps with {} checkpoints; both must be positive", steps,
                            checkpoints);
  }
  const auto n = static_cast<Wide>(steps);
  if (checkpoints == 1) {  // r = n - 1 runs, which need no search
    const Wide extra = n * (n - 1) / 2;
    const auto most = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());
    return {steps - 1, static_cast<std::int64_t>(std::min(extra, most))};
  }
  std::int64_t low = 0, high = steps;  // C(c + n, c) >= n
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (binomial(checkpoints + middle, checkpoints) >= n) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  // C(c + r - 1, c) < n bounds the last term by r n, well within 128 bits.
  const Wide saved = binomial(checkpoints + low, checkpoints + 1);
  const Wide extra = static_cast<Wide>(low) * n - saved;
  const auto most = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());
  return {low, static_cast<std::int64_t>(std::min(extra, most))};
}

}  // namespace reprise::planner
