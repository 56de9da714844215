#pragma once

// What no plan within a budget can beat, in cost and in memory.

#include <cstdint>
#include <functional>

#include "planner/structure.h"

namespace reprise::planner {

struct BoundOptions {
  // The linear relaxation (staged_program.h) is worked out for so many ops at most, with as many
  // anchors as fit into so many columns.
  std::size_t most_ops = 150;
  std::size_t most_columns = 40'000;
  std::int64_t iterations = 20'000;        // of the simplex method
  std::int64_t flow_effort = 400'000'000;  // of turn_bound.h
  std::function<bool()> stop{};            // true ends it with the bound so far
};

// A proven lower bound on the cost of any order whose live bytes stay within the budget: of the ops
// that must run, of what does not fit at the turn (turn_bound.h), and of the linear relaxation
// where the problem is small enough and a solver is there. Holds for budgets of the arena too,
// which is never smaller than the live bytes.
[[nodiscard]] std::int64_t cost_bound(const Problem& problem, OrderFreedom freedom, Bytes budget,
                                      const BoundOptions& options = {});

// A proven lower bound on the live bytes of any order: what an op that must run needs while it
// runs, and the outputs that are there before it.
[[nodiscard]] Bytes memory_bound(const Problem& problem, OrderFreedom freedom);

}  // namespace reprise::planner
