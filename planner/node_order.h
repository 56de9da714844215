#pragma once

// The order in which a problem lists the nodes of a graph: node order, but for late nodes.
//
// A forward node is late when only the backward part needs what it makes, and what it reads is
// there then in any case: persistent, read by a backward node, made by a late node, or no larger
// than what it makes. The logits
// of a time chunk are such a case: the forward part goes on without them, the backward part reads
// what they are made from. In node order the logits of all chunks would wait for their gradients;
// late ones are made right before these, once, and nothing is run again.
//
//     node order:  lstm0 logits0 loss0  lstm1 logits1 loss1 | dlogits1 dlstm1  dlogits0 dlstm0
//     listed:      lstm0                lstm1               | logits1 loss1 dlogits1 dlstm1
//                                                             logits0 loss0 dlogits0 dlstm0
//
// Of late nodes those that a backward node reads come right before the first that does, the others
// as soon as what they read is there, so that it can go.

#include <vector>

#include "graph/prepared.h"

namespace reprise::planner {

struct NodeOrder {
  std::vector<graph::NodeId> nodes;
  std::vector<bool> late;  // per node of the graph
};

// Of the nodes that are `needed`. `root`: of each value, the one whose bytes it is (reshapes).
[[nodiscard]] NodeOrder order_nodes(const graph::PreparedGraph& prepared,
                                    const base::IdVector<graph::ValueId, graph::ValueId>& root,
                                    const std::vector<bool>& needed);

}  // namespace reprise::planner
