#pragma once

// Ops that may wait (Structure::delayable) put back into an order of all other ops.

#include "planner/structure.h"

namespace reprise::planner {

// Each one as early as possible: when its inputs have been made, and after every run of the other
// readers of what it destroys. O(steps * arity).
[[nodiscard]] schedule::Order insert_delayed(const Structure& structure,
                                             const schedule::Order& order);

}  // namespace reprise::planner
