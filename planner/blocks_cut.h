#pragma once

// Smallest cut between two nodes of a directed graph (Dinic 1970), for block options.

#include <cstdint>
#include <limits>
#include <vector>

namespace reprise::planner {

class MinCut {
 public:
  static constexpr std::int64_t kUncuttable = std::numeric_limits<std::int64_t>::max() / 4;

  explicit MinCut(std::int32_t nodes) : first_(static_cast<std::size_t>(nodes), -1) {}
  void add_edge(std::int32_t from, std::int32_t to, std::int64_t capacity);
  // The nodes on the side of `source`: the fewest possible. The sum of the capacities that can be
  // cut must stay below kUncuttable.
  [[nodiscard]] std::vector<bool> source_side(std::int32_t source, std::int32_t sink);

 private:
  struct Edge {
    std::int32_t to, next;
    std::int64_t left;
  };
  bool find_levels(std::int32_t source, std::int32_t sink);
  void push_along_levels(std::int32_t source, std::int32_t sink);

  std::vector<std::int32_t> first_, level_, current_;
  std::vector<Edge> edges_;  // each one followed by its reverse
};

}  // namespace reprise::planner
