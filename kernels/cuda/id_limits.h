#pragma once

// Which inputs hold ids (rows of an embedding table, labels of classes). A kernel on a GPU cannot
// refuse one that is out of range, so the host does when it hands the input over.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace reprise::kernels::cuda {

class IdLimits {
 public:
  explicit IdLimits(const graph::Graph& graph);

  // Throws Error(kInput) naming node, id and limit for an id that one of the value's readers
  // (through reshape and slice) has no row for.
  void require(graph::ValueId value, std::span<const std::byte> plain) const;

 private:
  struct Reader {
    std::string node;
    std::string what;  // "embedding id", "label"
    std::int64_t limit = 0;
    bool may_ignore = false;
    std::int64_t ignored = 0;
  };
  base::IdVector<graph::ValueId, std::vector<Reader>> readers_;  // of graph inputs
};

}  // namespace reprise::kernels::cuda
