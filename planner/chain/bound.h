#pragma once

#include "planner/chain/chain.h"

namespace reprise::planner {

// A lower bound on the cost of every schedule of the table within the budget, dropping included.
//
// When the loss runs, each stage has run forward once, and the records that are there fit the
// budget. The other stages run forward once more, to be recorded: those for which that costs least
// for their bytes (the knapsack with fractions).
[[nodiscard]] std::int64_t chain_lower_bound(const ChainProblem& problem, Bytes budget);

}  // namespace reprise::planner
