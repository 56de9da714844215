#pragma once

// Sizes and costs of stages, from the ops that their steps really run (StageWalk) and what these
// make and free, in-place pairs included.
//
// What is live at every cut of the backward part (gradients of shared weights, which are added to
// in place) is no matter of the plan: it is left out of all y_i and would otherwise count twice
// while a backward stage runs.

#include <vector>

#include "planner/chain/chain.h"
#include "planner/chain/stage_walk.h"
#include "planner/chain/stages.h"

namespace reprise::planner {

class StageMeter {
 public:
  explicit StageMeter(const StagedGraph& graph);  // must outlive it

  // The stage as it is when it runs again: an option's forward_cost is that of making its record,
  // its backward_cost includes what is made again for it.
  [[nodiscard]] Stage measure(Index stage);
  // All stages, for the solver of chains. A first run costs the same whatever it records.
  [[nodiscard]] ChainProblem chain();

 private:
  [[nodiscard]] Bytes gradient(Index cut) const;
  [[nodiscard]] StageOption measure_option(Index stage, Index option);
  template <class Stays>
  [[nodiscard]] Bytes peak(const schedule::Order& ops, Bytes before, Index stage, Stays&& stays);

  const StagedGraph& g_;
  const Structure& s_;
  StageWalk walk_;
  Bytes everywhere_ = 0;          // live at every inner cut of the backward part
  std::vector<Index> last_read_;  // per tensor, position in the ops looked at
  std::vector<bool> live_;        // per tensor
};

}  // namespace reprise::planner
