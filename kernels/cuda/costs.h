#pragma once

// What a node costs on a GPU before anybody has measured it there.

#include <cstdint>

#include "graph/op.h"

namespace reprise::kernels::cuda {

// `launches` kernels one after the other; `bf16`: its factors are, so that tensor cores multiply.
[[nodiscard]] std::int64_t analytic_cost_ns(graph::OpKind op, double flops, double bytes,
                                            std::int64_t launches, bool bf16);

}  // namespace reprise::kernels::cuda
