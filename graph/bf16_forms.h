#pragma once

#include <vector>

#include "graph/op.h"

namespace reprise::graph {

// The ops whose numbers may be bf16; all others take and make f32. What else an op reads and makes
// stays f32: parameters but weights, statistics, gradients of parameters.
void add_bf16_forms(std::vector<OpInfo>& rows);

}  // namespace reprise::graph
