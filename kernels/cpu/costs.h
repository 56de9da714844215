#pragma once

// What a node costs where nothing was measured.

#include <cstdint>

#include "graph/op.h"

namespace reprise::kernels::cpu {

// Nanoseconds of a node of this op, from the operations and bytes it was booked with. The same on
// every machine: only ratios matter to a plan, and `reprise profile` measures the rest.
[[nodiscard]] std::int64_t analytic_cost_ns(graph::OpKind op, double flops, double bytes);

}  // namespace reprise::kernels::cpu
