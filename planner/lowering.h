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
  base::IdVector<schedule::OpId, graph::NodeId> nodes;        // node of each op
  base::IdVector<schedule::TensorId, graph::ValueId> values;  // storage root of each tensor
};

// Reshape nodes vanish (their values share the tensor of their root). Bytes are rounded up to
// graph::kArenaAlignment. Nodes whose outputs nobody needs (not fetched, no update) are left out.
// Frozen persistent values become kResident; changed ones kInput, with their last version kOutput;
// batch inputs kInput; fetched values kOutput. Persistent values come first among the tensors, in
// value order, read or not.
[[nodiscard]] GraphProblem make_problem(const graph::PreparedGraph& prepared);

// Slots and instructions of a plan for that problem.
[[nodiscard]] schedule::Schedule lower(const graph::PreparedGraph& prepared,
                                       const GraphProblem& problem, const Plan& plan);

}  // namespace reprise::planner
