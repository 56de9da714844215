#pragma once

// Plans from the repeated structure of a problem; see blocks.cc.

#include "planner/frontier.h"
#include "planner/structure.h"

namespace reprise::planner {

// Adds plans for a staircase of targets. Seconds for 100,000 ops. True when the problem is large
// and most of its forward part repeats: then these plans stand for those of other decisions, which
// would take minutes.
bool offer_blocks(const Structure& structure, const Request& request, Frontier& frontier);

}  // namespace reprise::planner
