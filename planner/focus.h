#pragma once

#include "planner/frontier.h"
#include "planner/structure.h"

namespace reprise::planner {

// Local search for the one budget of the request, until Request::stop says so: rounds of several
// searches side by side (Request::threads at a time), each round twice as long as the one before.
// `frontier` has plans already.
void offer_focused(const Structure& structure, const Request& request, Frontier& frontier);

}  // namespace reprise::planner
