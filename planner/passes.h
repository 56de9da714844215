#pragma once

// Steps of several forward and backward passes, one after the other: micro-batches.
//
//     program:  [ forward 0, backward 0 ][ forward 1, backward 1 ] ... [ forward n, backward n,
//     updates ]
//
// Strategies look for one forward part and one backward part. So each pass is a problem of its own:
// what earlier passes made is there before its first op, what later ones read stays to its end, and
// what is live beside it adds to its peak. Equal passes are planned once. For each level of memory
// the step is then the cheapest plan of each pass that fits, one behind the other.

#include <functional>
#include <vector>

#include "planner/frontier.h"

namespace reprise::planner {

struct Pass {
  Problem problem;  // without names
  // Of the whole problem, by id of this one's; invalid for the last, which stands for later
  // readers.
  std::vector<schedule::OpId> ops;
  Bytes elsewhere = 0;  // live during all of the pass, and none of the problem's
};

// The first op of each pass of program order, and the number of ops: a pass begins with a forward
// op behind a backward one.
[[nodiscard]] std::vector<std::size_t> pass_borders(const Problem& problem);

// These passes. None when there are fewer than two, or when they are too uneven to be
// micro-batches.
[[nodiscard]] std::vector<Pass> split_into_passes(const Problem& problem);

// Offers plans of the whole from what `solve` finds for the passes.
void offer_passes(const Request& request, const std::vector<Pass>& passes,
                  const std::function<void(const Request&, Frontier&)>& solve, Frontier& frontier);

}  // namespace reprise::planner
