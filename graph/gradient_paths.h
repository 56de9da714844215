#pragma once

// Which values of a forward graph need a gradient.

#include <vector>

#include "base/ids.h"
#include "graph/graph.h"

namespace reprise::graph {

// True for every f32 value on a path from one of `wanted` to the loss. Throws
// Error(kInput) listing every node on such a path that no gradient flows through, each with its
// path to the wanted value. O(values + nodes).
[[nodiscard]] base::IdVector<ValueId, bool> needed_gradients(const Graph& forward,
                                                             const std::vector<ValueId>& wanted);

}  // namespace reprise::graph
