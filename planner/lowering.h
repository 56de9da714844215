#pragma once

// The two bridges between graphs and problems: a prepared graph as a problem, and a plan as a
// schedule.

#include "graph/prepared.h"
#include "planner/strategy.h"
#include "schedule/problem.h"
#include "schedule/schedule.h"

namespace reprise::planner {

// The problem of one step, with what is needed to go back.
struct GraphProblem {
  Problem problem;
  // Node of each op; invalid for the one that updates wait for (Graph::updates_last).
  base::IdVector<schedule::OpId, graph::NodeId> nodes;
  base::IdVector<schedule::TensorId, graph::ValueId> values;  // storage root of each tensor;
                                                              // invalid for the token of that op
  // Of each op, the node's algorithm that each choice stands for.
  base::IdVector<schedule::OpId, std::vector<std::size_t>> algorithms;
};

// Reshape nodes vanish (their values share the tensor of their root). Bytes are rounded up to
// graph::kArenaAlignment. Nodes whose outputs nobody needs (not fetched, no update) are left out.
// Ops come in node order, but for late ones (planner/node_order.h), which count as backward. Frozen
// persistent values become kResident; changed ones kInput, with their last version kOutput; batch
// inputs kInput; fetched values kOutput. Persistent values come first among the tensors, in value
// order, read or not. With Graph::updates_last the updates of parameters come after all other ops
// and an op that reads all gradients, whose output they read.
[[nodiscard]] GraphProblem make_problem(const graph::PreparedGraph& prepared);

// Slots and instructions of a plan for that problem.
[[nodiscard]] schedule::Schedule lower(const graph::PreparedGraph& prepared,
                                       const GraphProblem& problem, const Plan& plan);

}  // namespace reprise::planner
