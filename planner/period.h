#pragma once

// Repeated structure of a forward part, found by itself.
//
//     program:  embedding | layer | layer | layer | ... | layer | head
//     blocks:   [ other  ] [  0  ] [  1  ] [  2  ]      [  n  ] [other]
//
// Each op gets a hash of what it does: cost, workspace, bytes and kinds of its operands, pairs in
// place, how far back nearby operands were made, what the backward part reads. A period is a
// distance at which hashes equal those before it. Of all runs of two or more periods the longest
// are taken first, of about equal ones the one of the smallest period. Block borders lie where the
// fewest bytes cross. What repeats nowhere is cut at narrow places.

#include <vector>

#include "planner/structure.h"

namespace reprise::planner {

struct Block {
  Index first = 0;  // forward ops [first, last)
  Index last = 0;
  Index run = 0;  // blocks of the same run follow each other
  bool repeated = false;
};

// All of the forward part, ascending. O(ops * candidates for the period), at most 24 of these.
[[nodiscard]] std::vector<Block> find_blocks(const Structure& structure);

}  // namespace reprise::planner
