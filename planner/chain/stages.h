#pragma once

// An op graph seen as a chain, and a chain's plan turned back into an order of ops.
//
// Stages are stretches of the forward part; x_i is what crosses the cut before stage i and is read
// again when stages are run again. A backward op belongs to the last stage that it or a later op
// reads from; y_i is what backward ops before the cut have made and those after it read. Where the
// graph is no chain sizes are estimates; what the order really takes is up to the frontier.

#include <vector>

#include "planner/chain/chain.h"
#include "planner/chain/program.h"
#include "planner/structure.h"

namespace reprise::planner {

class StagedGraph {
 public:
  // `cuts`: first op of each stage, ascending, the first one 0. `dropped[k]`: per tensor, is it
  // left out of the records of option k and made again by the backward stage? `structure` must
  // outlive it.
  StagedGraph(const Structure& structure, std::vector<Index> cuts,
              std::vector<std::vector<bool>> dropped);

  [[nodiscard]] Index stages() const { return static_cast<Index>(cuts_.size()); }
  [[nodiscard]] Index options() const { return static_cast<Index>(dropped_.size()); }
  // Demand makes whatever else is missing, so this holds on any graph. Empty when the order would
  // have more than `most_steps` steps.
  [[nodiscard]] schedule::Order order(const ChainProgram& program, std::int64_t most_steps) const;

  [[nodiscard]] const Structure& structure() const { return *s_; }
  // Ops of a stage, in program order; those that may be delayed are in no stage.
  [[nodiscard]] const std::vector<Index>& forward(Index stage) const { return forward_[at(stage)]; }
  [[nodiscard]] const std::vector<Index>& backward(Index stage) const {
    return backward_[at(stage)];
  }
  [[nodiscard]] Index stage_of(Index op) const { return stage_of_op_[at(op)]; }
  // Droppable tensors that the stage makes.
  [[nodiscard]] const std::vector<Index>& made(Index stage) const { return made_[at(stage)]; }
  // Droppable tensors made before stage `cut` and read by forward ops from it on; cut = 0..stages.
  [[nodiscard]] const std::vector<Index>& crossing(Index cut) const { return crossing_[at(cut)]; }
  // Bytes made by backward ops behind the cut and read by those before it.
  [[nodiscard]] Bytes gradient(Index cut) const { return gradient_[at(cut)]; }
  [[nodiscard]] bool dropped(Index option, Index tensor) const {
    return dropped_[at(option)][at(tensor)];
  }
  // Does the backward part read the tensor, or something that follows from it? All else is of use
  // only to the first run of the forward part.
  [[nodiscard]] bool feeds_backward(Index tensor) const { return feeds_backward_[at(tensor)]; }

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  void assign_ops();
  [[nodiscard]] Index last_stage_read(Index op) const;
  void place_tensors();
  void find_feeds();

  const Structure* s_;
  std::vector<Index> cuts_;
  std::vector<std::vector<bool>> dropped_;
  std::vector<Index> stage_of_op_;                      // forward and backward
  std::vector<std::vector<Index>> forward_, backward_;  // per stage
  std::vector<std::vector<Index>> made_;                // per stage
  std::vector<std::vector<Index>> crossing_;            // per cut
  std::vector<Bytes> gradient_;                         // per cut
  std::vector<bool> feeds_backward_;                    // per tensor
};

}  // namespace reprise::planner
