#pragma once

// Smallest cut between two nodes of a directed graph, and the largest flow (Dinic 1970).

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
  // The same with so many looks at edges at most. Where these do not suffice the cut is not the
  // smallest, and flow() a flow.
  [[nodiscard]] std::vector<bool> source_side(std::int32_t source, std::int32_t sink,
                                              std::int64_t effort);
  // What came through: all that can, after an unlimited source_side(). No cut is smaller.
  [[nodiscard]] std::int64_t flow() const { return flow_; }
  // Negative when it did not suffice.
  [[nodiscard]] std::int64_t effort_left() const { return effort_; }

 private:
  struct Edge {
    std::int32_t to, next;
    std::int64_t left;
  };
  bool find_levels(std::int32_t source, std::int32_t sink);
  void push_along_levels(std::int32_t source, std::int32_t sink);

  std::vector<std::int32_t> first_, level_, current_;
  std::vector<Edge> edges_;  // each one followed by its reverse
  std::int64_t flow_ = 0, effort_ = 0;
};

}  // namespace reprise::planner
