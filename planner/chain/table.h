#pragma once

// The dynamic programme over all stretches of a chain (rotor, Beaumont et al. 2019, with the
// transients of the table in chain.h), on staircases of exact bytes rather than on slots.
//
//   O(i,l)  stages i..l forward and backward, x_i and y_{l+1} there; l = L: with the loss in
//   between memory  bytes besides x_i, y_{l+1} among them
//
//   O(i,l) = the cheapest of
//     record      Fall(i)                       O(i+1,l) beside b[i+1]                        B(i)
//     checkpoint  Fck(i) Fnone(i+1..j-1)        O(j,l) beside a[j]                        O(i,j-1)
//     drop input  Fck(i) Fnone(..j-1) Fall(j)   O(j+1,l) beside b[j+1]   G(i,j) beside b[j+1]
//   G(i,j) = stages i..j when the record of stage j is there already
//
// Without the last line this is the optimum over memory-persistent schedules: what outlives an op
// that read it stays until its own backward stage. The last line keeps a record while the input it
// belongs to is dropped and made again, a larger class; both tables then grow alike.
//
// Long chains. Above `window` stages a stretch is looked at only when both its ends lie on a grid,
// and staircases are thinned out to `most_steps`. Stretches up to the loss start anywhere. What is
// found is then a valid schedule, not a proven optimum of the class; the floor stays exact.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/chain/chain.h"
#include "planner/chain/envelope.h"
#include "planner/chain/staircase.h"

namespace reprise::planner {

struct ChainTableOptions {
  bool drop_inputs = false;
  std::int32_t window = std::numeric_limits<std::int32_t>::max();
  std::int32_t grid = 1;
  std::size_t most_steps = std::numeric_limits<std::size_t>::max();  // of stretches before the loss
  std::size_t most_loss_steps = std::numeric_limits<std::size_t>::max();  // of those up to it
  std::function<bool()> stop{};
  int threads = 1;  // the table does not depend on it
};

class ChainTable {
 public:
  // `problem` must be valid and outlive it.
  ChainTable(const ChainProblem& problem, ChainTableOptions options);

  // False when stopped: then there are no plans.
  [[nodiscard]] bool complete() const { return complete_; }
  // No stretch was left out and no staircase thinned out.
  [[nodiscard]] bool exact() const { return exact_; }
  // Smallest budget and cost of each plan, by rising budget.
  [[nodiscard]] const Staircase& answers() const { return answers_; }
  // The instructions of the plan at a budget of answers(); empty below the first.
  [[nodiscard]] std::vector<ChainInstruction> plan(Bytes budget) const;

 private:
  using Stage32 = std::int32_t;
  struct Part {
    bool recorded = false;  // G rather than O
    Stage32 first = 0, last = 0;
    Bytes memory = 0;
  };
  class Unfolding;

  [[nodiscard]] const CellStaircase& at(bool recorded, Stage32 i, Stage32 l) const;
  [[nodiscard]] bool exists(Stage32 i, Stage32 l) const;
  [[nodiscard]] Bytes gradient_after(Stage32 l) const { return l == length_ ? 0 : g_[l + 1]; }
  void solve();
  void solve_leaf(Stage32 i, Envelope& best);
  void solve_part(bool recorded, Stage32 i, Stage32 l, Envelope& best);
  void add_records(bool recorded, Stage32 i, Stage32 l, Envelope& best) const;
  void add_record_run(bool recorded, Stage32 i, Stage32 l, Envelope& best) const;
  void add_splits(bool recorded, Stage32 i, Stage32 l, Envelope& best) const;
  void add_drops(bool recorded, Stage32 i, Stage32 l, Stage32 j, Bytes transient,
                 Envelope& best) const;

  const ChainProblem& problem_;
  ChainTableOptions options_;
  Stage32 length_;
  std::vector<Bytes> a_, g_;               // 0..L
  std::vector<std::int64_t> forward_sum_;  // of stages before i, Fck
  Bytes cap_ = 0;                          // what keeping all takes
  MemoryCells cells_{0, 1};
  std::vector<std::vector<CellStaircase>> original_, recorded_;  // [i][l - i]
  Staircase answers_;
  bool complete_ = false;
  std::atomic<bool> exact_ = true;
};

}  // namespace reprise::planner
