#pragma once

// A graph after a backend has chosen layouts: what every value and node costs on one device.
// This is all that planning and scheduling see of a backend.

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace reprise::graph {

// Every address in an arena is a multiple of this many bytes (a cache line; one AVX-512 register).
inline constexpr Bytes kArenaAlignment = 64;

// What a backend books for one node.
struct PreparedNode {
  Bytes workspace_bytes = 0;  // scratchpad, live only while the node runs
  std::int64_t cost_ns = 0;   // measured, or analytic from flops and bytes
  double flops = 0;
  double bytes_moved = 0;
  std::vector<InplacePair>
      inplace;  // pairs this backend's kernel supports; forced ones always among them

  friend bool operator==(const PreparedNode&, const PreparedNode&) = default;
};

struct PreparedGraph {
  Graph graph;                                 // with the backend's reorder nodes
  std::string backend;                         // "cpu", "reference", ...
  std::string cost_source;                     // "analytic" or "measured on ..."
  base::IdVector<ValueId, Bytes> value_bytes;  // bytes in the chosen layout, not yet aligned
  base::IdVector<ValueId, std::string>
      value_layouts;  // "plain" or the backend's name of the layout
  base::IdVector<NodeId, PreparedNode> nodes;

  friend bool operator==(const PreparedGraph&, const PreparedGraph&) = default;
};

}  // namespace reprise::graph
