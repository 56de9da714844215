#pragma once

// What a node costs on a GPU before anybody has measured it there.

#include <cstdint>

#include "graph/op.h"

namespace reprise::kernels::cuda {

[[nodiscard]] std::int64_t analytic_cost_ns(graph::OpKind op, double flops, double bytes);

}  // namespace reprise::kernels::cuda
