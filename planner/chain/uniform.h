#pragma once

// Chains whose stages are all alike: the same recurrence as table.h, which then depends on lengths
// alone.
//
//   P(n,m)  n stages forward and backward within m bytes beside the input, the gradient of the
//           output among them
//   Q(n,m)  n stages, the loss, n stages backward
//
// Short chains: exact staircases of P and Q. Long ones: with at most r runs forward each, A_r(m)
// stages can be gone through backward,
//
//   A_r(m) = max(1 + A_r(m - b), A_r(m - a) + A_{r-1}(m))       A_0 = 0
//
// so that n stages cost at least uf (n + sum over r of max(0, n - A_r(m))) + n ub. A plan is rolled
// out from the top: of recording and of a few splits near the A_r, the one whose parts have the
// least bound is taken, down to parts that the exact staircases know.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "planner/chain/envelope.h"
#include "planner/chain/program.h"
#include "planner/chain/solve.h"
#include "planner/chain/staircase.h"

namespace reprise::planner {

// Throws Error(kInput) naming the value.
void validate(const UniformChain& chain);

// P up to `inner` stages and Q up to `outer`, exact to the byte up to `cap` bytes beside x_0.
class UniformTable {
 public:
  UniformTable(const UniformChain& chain, std::int32_t inner, std::int32_t outer, Bytes cap,
               const std::function<bool()>& stop);
  [[nodiscard]] bool complete() const { return complete_; }
  [[nodiscard]] std::int32_t inner() const { return static_cast<std::int32_t>(p_.size()) - 1; }
  [[nodiscard]] std::int32_t outer() const { return static_cast<std::int32_t>(q_.size()) - 1; }
  [[nodiscard]] const Staircase& p(std::int32_t n) const {
    return p_[static_cast<std::size_t>(n)].steps;
  }
  [[nodiscard]] const Staircase& q(std::int32_t n) const {
    return q_[static_cast<std::size_t>(n)].steps;
  }

 private:
  void solve(const UniformChain& chain, std::int32_t n, bool outer, Envelope& best);

  MemoryCells cells_;
  std::vector<CellStaircase> p_, q_;  // p_[0] is empty: no stages are no part
  bool complete_ = false;
};

// A_r of P and Q and the bound that follows, on a grid of memory fine enough for the sizes.
class UniformSlopes {
 public:
  // For budgets up to `cap` bytes beside x_0.
  UniformSlopes(const UniformChain& chain, Bytes cap);

  // Most stages with at most r runs each; saturates at the chain's length.
  [[nodiscard]] std::int64_t reach(bool outer, std::int64_t r, Bytes memory) const;
  // The least r with reach >= n.
  [[nodiscard]] std::int64_t runs_needed(bool outer, std::int64_t n, Bytes memory) const;
  // A lower bound on P or Q over persistent schedules; nothing when no schedule fits. With `guess`,
  // runs beyond the table are estimated; without, left out.
  [[nodiscard]] std::optional<std::int64_t> bound(bool outer, std::int64_t n, Bytes memory,
                                                  bool guess) const;
  // The smallest memory for n stages.
  [[nodiscard]] Bytes floor(bool outer, std::int64_t n) const;

 private:
  // A_0 = 0, A_1, A_2, ... at one memory, and the sums of the first ones. Past its end it grows as
  // it did last.
  struct Column {
    std::span<const std::int64_t> reach, sum;
    [[nodiscard]] std::int64_t last() const { return static_cast<std::int64_t>(reach.size()) - 1; }
    [[nodiscard]] std::int64_t growth() const {
      return reach.size() < 2 ? 0 : reach.back() - reach[reach.size() - 2];
    }
  };
  struct Columns {
    std::vector<std::size_t> begin{0};
    std::vector<std::int64_t> reach, sum;
    [[nodiscard]] std::size_t size() const { return begin.size() - 1; }
    [[nodiscard]] Column at(std::size_t k) const {
      return {std::span(reach).subspan(begin[k], begin[k + 1] - begin[k]),
              std::span(sum).subspan(begin[k], begin[k + 1] - begin[k])};
    }
  };
  [[nodiscard]] Bytes base(bool outer) const { return outer ? base_q_ : base_p_; }
  [[nodiscard]] std::optional<Column> column(bool outer, Bytes memory) const;
  [[nodiscard]] std::int64_t recorded(bool outer, Bytes memory) const;  // A_1
  [[nodiscard]] std::int64_t reach_in(const Column& column, std::int64_t r) const;
  [[nodiscard]] std::int64_t reach_from(bool outer, std::int64_t r, Bytes steps, Bytes held) const;
  void fill(bool outer);

  UniformChain chain_;
  Bytes unit_ = 1;
  Bytes base_p_ = 0, base_q_ = 0;  // least memory for one stage that is recorded
  Columns p_, q_;                  // by memory above the base, up to where A_2 spans the chain
};

// The plan for a budget; nothing below the floor. `table` must know at least three stages of P and
// Q.
[[nodiscard]] ChainProgram roll_out(const UniformChain& chain, const UniformTable& table,
                                    const UniformSlopes& slopes, Bytes memory);

}  // namespace reprise::planner
