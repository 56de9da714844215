#pragma once

// Questions that tests ask of a graph.

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace reprise::graph {

inline std::vector<const Node*> nodes_of(const Graph& graph, OpKind op) {
  std::vector<const Node*> found;
  for (const Node& node : graph.nodes) {
    if (node.op == op) found.push_back(&node);
  }
  return found;
}

inline std::size_t count_phase(const Graph& graph, Phase phase) {
  return static_cast<std::size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                                [&](const Node& n) { return n.phase == phase; }));
}

inline ValueId find_value(const Graph& graph, std::string_view name) {
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[ValueId(i)].name == name) return ValueId(i);
  }
  return ValueId{};
}

inline std::size_t node_position(const Graph& graph, std::string_view name) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[NodeId(i)].name == name) return i;
  }
  ADD_FAILURE() << "no node named " << name;
  return graph.nodes.size();
}

inline bool is_output(const Graph& graph, ValueId value) {
  return std::find(graph.outputs.begin(), graph.outputs.end(), value) != graph.outputs.end();
}

}  // namespace reprise::graph
