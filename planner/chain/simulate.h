#pragma once

// The table of chain.h as a machine: it runs instructions one by one, so that plans of millions of
// instructions need no list. Every plan for a chain is replayed by it before it is handed out.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/chain/chain.h"

namespace reprise::planner {

// Throws Error(kInput) naming the stage and the values: a negative size or cost, a record smaller
// than the output it contains, a stage without options, sums beyond 2^63.
void validate(const ChainProblem& problem);

// The instruction that the table does not allow, and why.
struct ChainFault {
  std::int64_t step = 0;  // index of the instruction; their number when the end is too early
  std::string message;
};

struct ChainReplay {
  std::int64_t cost = 0;
  Bytes peak = 0;
  std::optional<ChainFault> fault;  // cost and peak tell nothing when there is one
};

class ChainMachine {
 public:
  explicit ChainMachine(const ChainProblem& problem);  // must outlive it
  explicit ChainMachine(const ChainProblem&&) = delete;
  // After a fault, instructions are ignored.
  void run(ChainInstruction instruction);
  // The result so far; a fault when backward stages are missing.
  [[nodiscard]] ChainReplay finish() const;
  [[nodiscard]] Bytes resident() const { return resident_; }

 private:
  using Count = std::size_t;
  [[nodiscard]] Bytes output_bytes(Count i) const;    // a[i]
  [[nodiscard]] Bytes gradient_bytes(Count i) const;  // g[i]
  [[nodiscard]] Bytes record_bytes(Count i) const;    // of the record there is of stage i - 1
  [[nodiscard]] std::string refusal(ChainInstruction instruction) const;
  [[nodiscard]] std::string refuse_forward(ChainInstruction instruction) const;
  [[nodiscard]] std::string refuse_backward(ChainInstruction instruction) const;
  void forward(ChainInstruction instruction);
  void loss();
  void backward(ChainInstruction instruction);
  void drop_plain(Count i);
  void during(Bytes more, std::int64_t cost);

  const ChainProblem& problem_;
  std::vector<bool> plain_;           // x_i is there, i = 0..L
  std::vector<std::int32_t> record_;  // option of the xbar_i that is there, -1 for none, i = 0..L
  Count gradient_;                    // y_i is there; L + 1 before the loss
  Bytes resident_ = 0;
  std::int64_t step_ = 0;
  ChainReplay replay_;
};

[[nodiscard]] ChainReplay replay(const ChainProblem& problem,
                                 std::span<const ChainInstruction> instructions);

// "Fall 3", "Loss", "DropXB 2": the names of the problem files.
[[nodiscard]] const char* chain_step_name(ChainStep step);

}  // namespace reprise::planner
