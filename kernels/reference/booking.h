#pragma once

// What the reference backend books for a node.

#include "graph/prepared.h"

namespace reprise::kernels::reference {

// Workspace, operations, bytes and analytic cost. `value_bytes` are those of the stored form.
[[nodiscard]] graph::PreparedNode book(
    const graph::Graph& graph, const graph::Node& node,
    const base::IdVector<graph::ValueId, graph::Bytes>& value_bytes);

}  // namespace reprise::kernels::reference
