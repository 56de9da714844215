#pragma once

// Makes an evaluation graph share the persistent values of a training graph.

#include "graph/graph.h"

namespace reprise::graph {

// The graph `evaluation` with all persistent values of `training` (parameters, optimizer state,
// states; in its order, read or not) as its first values. Both then agree on every persistent byte,
// so one arena serves both. Throws Error(kInput) naming a persistent value of `evaluation` that
// `training` lacks, or whose shape, dtype or role differs.
[[nodiscard]] Graph share_persistent_values(const Graph& evaluation, const Graph& training);

}  // namespace reprise::graph
