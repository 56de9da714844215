#pragma once

// Short chains: the cheapest of all schedules of the table, by a shortest path over what is there.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/chain/chain.h"

namespace reprise::planner {

struct ShortestOptions {
  std::int64_t below = 0;        // only schedules cheaper than this are of interest
  std::int64_t most_states = 0;  // gives up beyond
  std::function<bool()> stop{};
};

struct ShortestResult {
  bool proven = false;  // the search ended: no schedule costs less than what is known
  std::vector<ChainInstruction> cheaper;  // the cheapest one below the limit; empty for none
};

// A* over the sets of values that are there; nothing for chains too long for it (more than 10
// stages, or 14 options). No recursion, deterministic.
[[nodiscard]] ShortestResult shortest_schedule(const ChainProblem& problem, Bytes budget,
                                               const ShortestOptions& options);

}  // namespace reprise::planner
