#pragma once

// Local search over orders (simulated annealing), for any graph: a run is added, taken out or
// moved, the peak is known exactly after each such move, and a move that makes things worse is
// accepted with falling probability.

#include <cstdint>
#include <functional>

#include "planner/live_sequence.h"

namespace reprise::planner {

struct AnnealOptions {
  Bytes target = 0;        // wanted largest live sum
  std::int64_t moves = 0;  // effort; never a clock
  double start_temperature = 2e-2;
  double end_temperature = 2e-6;
  // How much a relative excess over the target weighs against the same relative cost.
  double memory_weight = 2;
  std::uint64_t seed = 0;
  std::function<bool()> stop{};  // asked every few hundred moves; true ends the search
};

struct AnnealResult {
  schedule::Order order;
  Bytes live_peak = 0;
  std::int64_t cost = 0;
};

// The best order seen: the cheapest one whose peak is within the target; when there is none, the
// smallest one. `start` must be an execution.
[[nodiscard]] AnnealResult anneal(const Structure& structure, const schedule::Order& start,
                                  const AnnealOptions& options);

}  // namespace reprise::planner
