#pragma once

// Instructions of a chain in runs: equal steps on neighbouring stages count as one, so that the
// plan of a million stages is short. Forward steps go up from `stage`, all others go down:
//
//   {kForwardAll, stage 3, count 4}   Fall 3, Fall 4, Fall 5, Fall 6
//   {kBackward,   stage 6, count 4}   B 6, B 5, B 4, B 3
//
// As JSON, when there are more than 100,000 instructions, a run is the instruction with the count
// behind it: ["Fall", 3, 4], ["B", 6, 4], ["Loss", 0, 1]; with options ["Fall", 3, 4, option].

#include <cstdint>
#include <vector>

#include "planner/chain/chain.h"

namespace reprise::planner {

struct ChainRun {
  ChainStep step = ChainStep::kLoss;
  std::int32_t stage = 0;
  std::int32_t option = 0;
  std::int32_t count = 1;
  friend bool operator==(const ChainRun&, const ChainRun&) = default;
};

class ChainProgram {
 public:
  void push(ChainInstruction instruction, std::int32_t count = 1);
  [[nodiscard]] const std::vector<ChainRun>& runs() const { return runs_; }
  [[nodiscard]] std::int64_t instruction_count() const { return count_; }
  [[nodiscard]] std::vector<ChainInstruction> instructions() const;

  // f(ChainInstruction), in order.
  template <class F>
  void for_each(F&& f) const {
    for (const ChainRun& run : runs_) {
      const std::int32_t direction = upwards(run.step) ? 1 : -1;
      for (std::int32_t k = 0; k < run.count; ++k) {
        f(ChainInstruction{run.step, run.stage + direction * k, run.option});
      }
    }
  }
  [[nodiscard]] static bool upwards(ChainStep step) {
    return step == ChainStep::kForwardAll || step == ChainStep::kForwardKeep ||
           step == ChainStep::kForwardDrop;
  }
  friend bool operator==(const ChainProgram&, const ChainProgram&) = default;

 private:
  std::vector<ChainRun> runs_;
  std::int64_t count_ = 0;
};

}  // namespace reprise::planner
