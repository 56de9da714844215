#pragma once

#include "planner/frontier.h"
#include "planner/structure.h"

namespace reprise::planner {

// Local search at a ladder of targets from what keep_all takes down to the smallest peak that it
// finds itself. The targets are a matter of the problem alone, so that a request chooses among the
// same plans whatever its budget. `frontier` has plans already, keep_all's among them.
void offer_searched(const Structure& structure, const Request& request, Frontier& frontier);

// Problems of more ops than this take local search too long.
inline constexpr Index kMostSearchedOps = 3000;

}  // namespace reprise::planner
