#pragma once

// Runs a chain's instructions on the op graph behind it, and writes down the ops. What is there is
// known by tensor; what stays follows from the cuts and records that are held.

#include <cstdint>
#include <vector>

#include "planner/chain/stages.h"

namespace reprise::planner {

class StageWalk {
 public:
  // `graph` must outlive it. Gives up when the order would have more than `most_steps` steps.
  StageWalk(const StagedGraph& graph, std::int64_t most_steps);

  void step(ChainInstruction instruction);
  // The order, delayed ops put in; empty when given up.
  [[nodiscard]] schedule::Order finish();

  // As if the whole forward part had run, all backward stages behind this one too, and of the stage
  // nothing but its input was there. Steps of this stage may follow; take() hands out their ops.
  void stand_before(Index stage);
  [[nodiscard]] schedule::Order take();

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  void run(const std::vector<Index>& ops, Index stage);
  bool run_op(Index top);
  void emit(Index i);
  [[nodiscard]] Index missing_producer(Index i) const;
  [[nodiscard]] bool keep(Index t) const;
  void drop(const std::vector<Index>& tensors);
  void drop_from(Index stage);

  const StagedGraph& g_;
  const Structure& s_;
  const std::int64_t most_steps_;
  bool too_long_ = false;
  std::vector<bool> present_, needed_, ran_, cut_held_;
  std::vector<std::int32_t> record_;  // option of each stage's record, -1 for none
  std::vector<Index> waiting_, demanded_;
  schedule::Order order_;
};

}  // namespace reprise::planner
