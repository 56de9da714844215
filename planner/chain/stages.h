#pragma once

// An op graph seen as a chain, and a chain's plan turned back into an order of ops.
//
// Stages are stretches of the forward part; x_i is what crosses the cut before stage i. A backward
// op belongs to the last stage that it or a later op reads from. Sizes are measured in program
// order; where the graph is no chain they are estimates, and what the order really takes is up to
// the frontier.

#include <vector>

#include "planner/chain/chain.h"
#include "planner/chain/program.h"
#include "planner/structure.h"

namespace reprise::planner {

class StagedGraph {
 public:
  // `cuts`: first op of each stage, ascending, the first one 0. `dropped[k]`: per tensor, is it
  // left out of the records of option k and made again by the backward stage?
  StagedGraph(const Structure& structure, std::vector<Index> cuts,
              std::vector<std::vector<bool>> dropped);

  [[nodiscard]] Index stages() const { return static_cast<Index>(cuts_.size()); }
  [[nodiscard]] ChainProblem chain() const;
  // Demand makes whatever else is missing, so this holds on any graph. Empty when the order would
  // have more than `most_steps` steps.
  [[nodiscard]] schedule::Order order(const ChainProgram& program, std::int64_t most_steps) const;

 private:
  class Walk;
  [[nodiscard]] Stage measure(Index stage) const;
  [[nodiscard]] Bytes transient(const std::vector<Index>& ops) const;

  const Structure& s_;
  std::vector<Index> cuts_;
  std::vector<std::vector<bool>> dropped_;
  std::vector<Index> stage_of_op_;                      // forward and backward
  std::vector<std::vector<Index>> forward_, backward_;  // ops per stage, in program order
  std::vector<std::vector<Index>> made_;                // droppable tensors per stage
  std::vector<std::vector<Index>> crossing_;            // droppable tensors per cut
  std::vector<Bytes> gradient_;  // made after, read before the cut going back
};

}  // namespace reprise::planner
