#pragma once

// The smallest memory in which a chain can be gone through at all, whatever that costs: the
// recurrence of table.h with memory alone. Exact at lengths at which the table has a window.

#include <cstdint>
#include <vector>

#include "planner/chain/chain.h"

namespace reprise::planner {

class ChainFloor {
 public:
  // `problem` must be valid and outlive it. O(L^3) of the simplest steps, 8 L^2 bytes.
  explicit ChainFloor(const ChainProblem& problem);

  // No persistent schedule needs less.
  [[nodiscard]] Bytes budget() const;
  // A schedule that needs no more.
  [[nodiscard]] std::vector<ChainInstruction> plan() const;

 private:
  using Stage32 = std::int32_t;
  [[nodiscard]] Bytes gradient_after(Stage32 l) const;
  [[nodiscard]] Bytes of_leaf(Stage32 i, std::int32_t option) const;
  [[nodiscard]] Bytes of_record(Stage32 i, Stage32 l, std::int32_t option) const;
  [[nodiscard]] std::int32_t best_option(Stage32 i, Stage32 l) const;
  [[nodiscard]] std::vector<Bytes> transients(Stage32 i) const;
  // Of stages i..l, beside x_i, the gradient behind l among it.
  [[nodiscard]] Bytes least(Stage32 i, Stage32 l) const;

  const ChainProblem& problem_;
  Stage32 length_;
  std::vector<Bytes> a_, g_;                // 0..L
  std::vector<std::vector<Bytes>> beside_;  // [l][i] = a[i] + least(i, l)
};

}  // namespace reprise::planner
