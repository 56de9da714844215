#pragma once

// The moves of the local search. Each changes a LiveSequence and remembers how to take it back.

#include <cstdint>
#include <vector>

#include "planner/live_sequence.h"
#include "planner/random.h"

namespace reprise::planner {

class Moves {
 public:
  // `target`: the wanted peak.
  Moves(const Structure& structure, LiveSequence& sequence, Random& random, Bytes target);

  // Tries one move of a random kind; false when it found nothing to change, or only what costs more
  // than `most_cost` in all. The sequence may be no execution afterwards: then it has to be taken
  // back.
  bool propose(double most_cost);
  void accept() { changes_.clear(); }
  void take_back();

 private:
  // Walker's alias method: a draw falls on one of the two tensors that share a slot.
  struct Share {
    double own = 1;   // probability of the slot's own tensor
    Index other = 0;  // in droppable_
  };
  struct Change {
    enum class Kind : std::uint8_t { kAdded, kRemoved, kChose } kind;
    Index op;
    Index before;  // the position of the run; the choice that it had
  };

  // A tensor live over the peak, not used there, made again afterwards: of `contestants` drawn the
  // one that costs least for its bytes.
  bool drop_over_peak(Index contestants);
  bool make_again();        // a random tensor made again right before a random use
  bool take_out();          // one run of an op that runs more than once, and what only served it
  bool exchange();          // one run out, and others in until the peak is within the target again
  bool relocate();          // one run to another place between what it reads and who reads it
  bool switch_algorithm();  // another algorithm for an op that has several
  bool take_out_at(Index position);
  // Algorithms: a faster one for a random op; a leaner one for the op at the peak.
  bool choose_faster();
  bool choose_leaner_at_peak();
  // Sets ops_ to the producer of `tensor` and what that needs and is not at hand before `position`.
  // `lost_before`: what was last used before it is not at hand. False: that cannot be.
  bool find_chain(Index tensor, Index position, Index lost_before);
  [[nodiscard]] double cost_of_chain() const;
  bool run_chain(Index position);  // runs ops_ before `position`
  void add(Index op, Index position);
  void remove(Index position);
  void choose(Index op, std::int32_t choice);
  void share_out(double mean);
  [[nodiscard]] Index draw_tensor();
  [[nodiscard]] Index draw_run();

  const Structure& s_;
  LiveSequence& sequence_;
  Random& random_;
  const Bytes target_;
  double most_cost_ = 0;
  std::vector<Index> droppable_;  // tensors worth dropping
  std::vector<Share> shares_;     // of droppable_, to draw by bytes
  std::vector<Index> choosable_;  // ops that have several algorithms
  std::vector<Change> changes_;
  std::vector<Index> wanted_, ops_, best_ops_;
};

}  // namespace reprise::planner
