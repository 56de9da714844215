#pragma once

// The text form of a graph (docs/graph_format.md), and its drawing.

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace reprise::graph {

// Round-trips: parse_graph(print_graph(g)) == g, doubles included (shortest exact form).
[[nodiscard]] std::string print_graph(const Graph& graph);

// Throws Error(kInput) with line number, the offending text and what was expected. The result is
// validated.
[[nodiscard]] Graph parse_graph(std::string_view text);

// Graphviz source: nodes as boxes by phase, values as edges with their shapes.
[[nodiscard]] std::string to_dot(const Graph& graph);

}  // namespace reprise::graph
