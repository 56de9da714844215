#pragma once

// A lower bound on the cost of every plan within a budget, for problems of any size: what does not
// fit at the turn runs again.
//
// Let a be a required op, A the ops that run before it in every execution (those it follows from;
// in a fixed order all before it), D the required ops that cannot (those that follow from it). Take
// the first run of a, and let H be what is there then and read by what runs later. Every op of D
// runs later; what it reads is in H, or made later, by an op that reads in turn. An op of A that
// runs later runs once more than it must. So an execution costs what all required ops cost once and
//
//     min over H, E of  sum of cost[k] over k in E,    bytes(H) <= budget - what a itself takes
//
// where E are the ops of A that then have to run later. For a price per byte the best H is a
// smallest cut,
//
//     source ──∞──▶ read(u) ──price·bytes(u)──▶ later(op of u) ──cost(op)──▶ sink
//                                                   │
//                                                   └──∞──▶ read(inputs)
//
// and cut - price * bytes is a bound for each price (Lagrange); the best price is found along the
// lines that the cuts are. It is the linear relaxation of staged_program.h with one anchor, without
// a solver. A flow that was cut short is below the cut, so limited effort gives a bound too.
//
// Of several passes each has a turn. A turn's bound counts runs of its own pass alone; so their sum
// is a bound.

#include "planner/structure.h"

namespace reprise::planner {

// The extra cost beside that of the required ops, with the turn at this op, of runs of the ops
// [first, last): 0 where nothing is known, so too where the turn itself does not fit. `effort`:
// looks at edges of the flow problems, counted down.
[[nodiscard]] std::int64_t turn_bound_at(const Structure& structure, Index anchor, Index first,
                                         Index last, Bytes budget, std::int64_t& effort);

// The best of turns around the first backward op of each pass, of all passes together.
[[nodiscard]] std::int64_t turn_bound(const Structure& structure, Bytes budget,
                                      std::int64_t effort);

}  // namespace reprise::planner
