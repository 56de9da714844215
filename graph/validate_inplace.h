#pragma once

// The part of validate() about writes in place; the graph passed the rest of it already.

#include "graph/graph.h"

namespace reprise::graph {

// Updates: each is made by an update op from its persistent value, and each update op's outputs are
// listed. Throws Error(kInput).
void check_updates(const Graph& graph);

// Forced in-place writes: nothing reads what they overwrite afterwards. Throws Error(kInput).
void check_inplace_writes(const Graph& graph);

}  // namespace reprise::graph
