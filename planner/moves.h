#pragma once

// The moves of the local search. Each changes a LiveSequence and remembers how to take it back.

#include <vector>

#include "planner/live_sequence.h"
#include "planner/random.h"

namespace reprise::planner {

class Moves {
 public:
  // `target`: the wanted peak.
  Moves(const Structure& structure, LiveSequence& sequence, Random& random, Bytes target);

  // Tries one move of a random kind; false when it found nothing to change. The sequence may be no
  // execution afterwards: then it has to be taken back.
  bool propose();
  void accept() { changes_.clear(); }
  void take_back();

 private:
  struct Change {
    Index op, position;
    bool added;
  };

  bool drop_over_peak();  // a tensor live over the peak, not used there: made again afterwards
  bool make_again();      // a random tensor made again right before a random use
  bool take_out();        // one run of an op that runs more than once, and what only served it
  bool exchange();        // one run out, and others in until the peak is within the target again
  bool relocate();        // one run to another place between what it reads and who reads it
  bool take_out_at(Index position);
  // Runs the producer of `tensor` again before `position`, and what that needs and is not at hand.
  // `lost_before`: what was last used before it is not at hand.
  bool run_again(Index tensor, Index position, Index lost_before);
  void add(Index op, Index position);
  void remove(Index position);
  [[nodiscard]] Index draw_tensor();
  [[nodiscard]] Index draw_run();

  const Structure& s_;
  LiveSequence& sequence_;
  Random& random_;
  const Bytes target_;
  std::vector<Index> droppable_;      // tensors worth dropping
  std::vector<double> summed_bytes_;  // over droppable_
  std::vector<Change> changes_;
  std::vector<Index> wanted_, ops_;
};

}  // namespace reprise::planner
