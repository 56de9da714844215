#pragma once

// A small problem as bit sets, for the exact search. Bits stand for the tensors that come and go
// (all but resident ones), and for the ops that may run only once.

#include <cstdint>
#include <vector>

#include "planner/strategy.h"
#include "planner/structure.h"

namespace reprise::planner {

using Bits = std::uint64_t;

struct ExactOp {
  Bits inputs = 0, outputs = 0;
  Bits destroyed = 0, forced_outputs = 0;  // of forced in-place pairs
  Bytes output_bytes = 0, forced_bytes = 0;
  // Those that the search may use, fastest first; see ExactModel::restrict_to.
  std::vector<schedule::Algorithm> algorithms;
  std::int32_t first_choice = 0;  // of algorithms.front()
  int once = -1;                  // its bit among the ops that run once
  bool recomputable = true;
  struct Pair {  // optional
    Bits input, output;
    Bytes bytes;
  };
  std::vector<Pair> pairs;
};

// What has run for good: in a free order the set of ops that run once, in a fixed order the number
// of ops that have run for the first time.
using Progress = std::uint64_t;

class ExactModel {
 public:
  ExactModel(const Problem& problem, OrderFreedom order);

  // Leaves the op one of its algorithms.
  void restrict_to(int op, std::int32_t choice);

  [[nodiscard]] bool fits() const { return fits_; }
  [[nodiscard]] int ops() const { return static_cast<int>(ops_.size()); }
  [[nodiscard]] const ExactOp& op(int i) const { return ops_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] Bytes fixed_bytes() const { return fixed_bytes_; }  // always resident
  [[nodiscard]] Bits at_start() const { return at_start_; }
  [[nodiscard]] Bits outputs() const { return outputs_; }
  [[nodiscard]] const std::vector<Bytes>& bytes() const { return bytes_; }
  [[nodiscard]] Bytes bytes_of(Bits tensors) const;

  [[nodiscard]] bool finished(Progress progress, Bits resident) const;
  // May the op run next, as far as its turn goes, and what is the progress then?
  [[nodiscard]] bool may_run(int op, Progress progress, Progress& after) const;
  // The cost of what still has to run if memory were no matter; -1 when something is lost for good.
  [[nodiscard]] std::int64_t cost_to_finish(Progress progress, Bits resident) const;
  // Tensors for which there may still be a use: outputs not there yet, and what is read by ops that
  // must run or that make such tensors.
  [[nodiscard]] Bits wanted(Progress progress, Bits resident) const;

 private:
  [[nodiscard]] bool pending(int op, Progress progress) const;

  bool fits_ = false, fixed_order_;
  std::vector<ExactOp> ops_;
  std::vector<Bytes> bytes_;  // per bit
  Bytes fixed_bytes_ = 0;
  Bits at_start_ = 0, outputs_ = 0, all_once_ = 0;
};

}  // namespace reprise::planner
