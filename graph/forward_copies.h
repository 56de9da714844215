#pragma once

// The forward graph once for each micro-batch of a step, all with the same parameters.
//
//    copy 0                     copy 1                          (each followed by its backward
//    part) images ──▶ conv ──▶ loss   micro1/images ──▶ micro1/conv ──▶ micro1/loss
//                 ▲                                    ▲
//                 └──────────────── w ─────────────────┘
//
// Inputs belong to a copy. A state that is assigned, whose first axis is the batch, has the rows of
// all copies; each copy reads its own, and what they leave is put together for the assignment.
// Dropout draws from streams of its own in each copy. Running statistics take up the batches of all
// copies in their order. With a single micro-batch the forward graph stays as it is, ids included.

#include <cstdint>
#include <vector>

#include "graph/builder.h"
#include "graph/forward_updates.h"

namespace reprise::graph {

class ForwardCopies {
 public:
  // With more than one copy the running statistics must have been taken out of the graph.
  ForwardCopies(Graph forward, std::vector<StatisticsUpdate> statistics, std::int64_t count);

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] const Graph& forward() const { return forward_; }
  // What all copies are appended to.
  [[nodiscard]] Builder begin();
  void append(Builder& builder);

  // Of the newest copy.
  [[nodiscard]] ValueId at(ValueId of_forward) const { return at_[of_forward]; }
  [[nodiscard]] std::size_t first_node() const { return first_node_; }
  [[nodiscard]] std::size_t end_node() const { return end_node_; }

  // After the last copy.
  [[nodiscard]] const std::vector<StatisticsUpdate>& statistics() const { return statistics_; }
  [[nodiscard]] std::vector<Assignment> assignments(Builder& builder) const;

 private:
  struct Carried {
    Assignment assignment;  // of forward_
    ValueId variable;       // all rows
    std::vector<ValueId> parts;
  };

  void append_sources(Builder& builder);
  void append_nodes(Builder& builder);

  Graph forward_;
  std::int64_t count_;
  std::int64_t appended_ = 0;
  std::int64_t dropout_streams_ = 0;  // of one copy
  std::vector<StatisticsUpdate> of_one_, statistics_;
  std::vector<Carried> carried_;
  base::IdVector<ValueId, ValueId> at_;
  std::size_t first_node_ = 0, end_node_ = 0;
};

}  // namespace reprise::graph
