#pragma once

// What a forward graph itself changes across steps, taken out of it: assigned states, which change
// after their last reader, and, where they have to wait, running statistics.

#include <string>
#include <vector>

#include "graph/graph.h"

namespace reprise::graph {

struct Assignment {
  ValueId state, x;
  std::string name;  // of the assign node
};

// Takes the assign nodes off the end of the graph. Throws Error(kInput) when one stands elsewhere
// or makes an output.
[[nodiscard]] std::vector<Assignment> remove_assignments(Graph& graph);

struct StatisticsUpdate {
  std::string name;  // of the batch_norm_update node
  RunningUpdateAttributes attributes{};
  ValueId running_mean, running_var;
  std::vector<ValueId> batches;  // mean and var of each, one after the other
};

struct WithoutStatistics {
  Graph graph;                             // the other values and nodes, in their order
  base::IdVector<ValueId, ValueId> moved;  // what each value has become; invalid: it is gone
  std::vector<StatisticsUpdate> updates;   // with ids of the new graph
};

// Throws Error(kInput) when a value that such an update makes is an output.
[[nodiscard]] WithoutStatistics take_statistics_updates(const Graph& forward);

}  // namespace reprise::graph
