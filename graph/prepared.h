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

// Another way in which a backend can run a node: other time and workspace, and all else the same;
// layouts, in-place pairs and every bit of the result.
struct Algorithm {
  std::string name;  // "winograd"; for people
  Bytes workspace_bytes = 0;
  std::int64_t cost_ns = 0;

  friend bool operator==(const Algorithm&, const Algorithm&) = default;
};

// What a backend books for one node.
struct PreparedNode {
  Bytes workspace_bytes = 0;  // scratchpad, live only while the node runs
  std::int64_t cost_ns = 0;   // measured, or analytic from flops and bytes
  double flops = 0;
  double bytes_moved = 0;
  std::vector<InplacePair>
      inplace;  // pairs this backend's kernel supports; forced ones always among them
  // Algorithm 0 is the one above, algorithm k is others[k - 1]. A plan picks one for each node.
  std::vector<Algorithm> others{};

  [[nodiscard]] std::size_t algorithms() const { return 1 + others.size(); }
  [[nodiscard]] Bytes workspace_of(std::size_t algorithm) const {
    return algorithm == 0 ? workspace_bytes : others[algorithm - 1].workspace_bytes;
  }
  [[nodiscard]] std::int64_t cost_of(std::size_t algorithm) const {
    return algorithm == 0 ? cost_ns : others[algorithm - 1].cost_ns;
  }
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
