#pragma once

// A gradient that is summed over ranks keeps its bytes until the sum is there and the update has
// run. The longer it may, the more the sum hides behind; a plan that weighs bytes alone ends it at
// once. So here awaits, with the updates behind them, go as far down as there is room, and the
// buffers are packed anew:
//
//     live   ______/^^^^\____                 limit ---------------
//     before . g reduce await update . . .            _/^^^^^^^^\_
//     after  . g reduce . . . await update .  what the backward part frees is filled
//
// spread_sums.h then moves, within that arena, what can still move.

#include "planner/lowering.h"
#include "planner/strategy.h"

namespace reprise::planner {

// The same ops in another order, in an arena of at most `limit`; `plan` as it is where the graph
// has no sums, or updates at the end, or where no such order fits. `plan.arena` is at most `limit`.
[[nodiscard]] Plan hold_sums(const graph::PreparedGraph& prepared, const GraphProblem& problem,
                             Plan plan, Bytes limit, const PackingOptions& packing);

}  // namespace reprise::planner
