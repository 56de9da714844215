#pragma once

// One training step as the planner sees it: tensors with bytes, ops with costs. No graph, no
// device, no pointers; a trainer of another make can fill one by hand. (Model G of Checkmate-like
// planners: every gradient and update is an ordinary tensor or op.)

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "graph/op.h"

namespace reprise::schedule {

using base::Bytes;
using TensorId = base::Id<struct TensorTag>;
using OpId = base::Id<struct OpTag>;

enum class TensorKind : std::uint8_t {
  kResident,  // there before the first op, counted for the whole step (frozen parameters)
  kInput,   // there before the first op; nothing makes it again; its bytes are free after its last
            // reader
  kTemp,    // made by an op; may be dropped and made again
  kOutput,  // made by an op; once made it stays to the end
};

struct Tensor {
  std::string name;
  Bytes bytes = 0;  // aligned: what it takes in the arena
  TensorKind kind = TensorKind::kTemp;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// A way to run an op: what it takes besides inputs and outputs.
struct Algorithm {
  Bytes workspace = 0;    // aligned; live only while the op runs
  std::int64_t cost = 0;  // nanoseconds, or any unit
  friend bool operator==(const Algorithm&, const Algorithm&) = default;
};

struct Op {
  std::string name;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  Bytes workspace = 0;       // of the fastest algorithm, which is choice 0; see Algorithm
  std::int64_t cost = 0;     // of that algorithm
  bool recomputable = true;  // false: runs exactly once
  bool backward =
      false;  // belongs to the backward or update part; a hint for strategies that split there
  // A forced pair always destroys its input. An optional one shares the buffer when the input is
  // not read later and the bytes are equal. Indices into `inputs` and `outputs`.
  std::vector<graph::InplacePair> inplace;
  // Further algorithms that do the same, each dearer than the one before it and of less workspace:
  // choice k is leaner[k - 1]. A plan picks one for each op.
  std::vector<Algorithm> leaner{};

  [[nodiscard]] std::size_t choices() const { return 1 + leaner.size(); }
  [[nodiscard]] Algorithm algorithm(std::size_t choice) const {
    return choice == 0 ? Algorithm{workspace, cost} : leaner[choice - 1];
  }
  [[nodiscard]] Bytes least_workspace() const {
    return leaner.empty() ? workspace : leaner.back().workspace;
  }
  friend bool operator==(const Op&, const Op&) = default;
};

// Gives the op the algorithms worth having, fastest first: those that no other is as good as in
// cost and workspace. Returns where each of them is in `algorithms`, which is not empty.
std::vector<std::size_t> set_algorithms(Op& op, const std::vector<Algorithm>& algorithms);

struct Problem {
  std::string name;
  base::IdVector<TensorId, Tensor> tensors;
  base::IdVector<OpId, Op> ops;  // in a valid program order
  friend bool operator==(const Problem&, const Problem&) = default;
};

// A decision in its plainest form: which op runs at each step. Reads bind to the newest copy of a
// tensor; a copy is dropped after its last reader. Nothing else is decided.
using Order = std::vector<OpId>;

// The algorithm of each op, the same one whenever it runs; empty: choice 0 of all.
using Choices = std::vector<std::int32_t>;
[[nodiscard]] inline Algorithm chosen_algorithm(const Problem& problem, const Choices& choices,
                                                OpId op) {
  const Op& o = problem.ops[op];
  return o.algorithm(choices.empty() ? 0 : static_cast<std::size_t>(choices[op.index()]));
}

// Throws Error(kInput) naming the op or tensor: unknown indices, negative sizes or costs, a total
// beyond 2^63, algorithms out of order, two producers, a reader before the producer, an in-place
// pair that does not exist.
void validate(const Problem& problem);

}  // namespace reprise::schedule
