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

struct Op {
  std::string name;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  Bytes workspace = 0;       // aligned; live only while the op runs
  std::int64_t cost = 0;     // nanoseconds, or any unit
  bool recomputable = true;  // false: runs exactly once
  bool backward =
      false;  // belongs to the backward or update part; a hint for strategies that split there
  // A forced pair always destroys its input. An optional one shares the buffer when the input is
  // not read later and the bytes are equal. Indices into `inputs` and `outputs`.
  std::vector<graph::InplacePair> inplace;
  friend bool operator==(const Op&, const Op&) = default;
};

struct Problem {
  std::string name;
  base::IdVector<TensorId, Tensor> tensors;
  base::IdVector<OpId, Op> ops;  // in a valid program order
  friend bool operator==(const Problem&, const Problem&) = default;
};

// A decision in its plainest form: which op runs at each step. Reads bind to the newest copy of a
// tensor; a copy is dropped after its last reader. Nothing else is decided.
using Order = std::vector<OpId>;

// Throws Error(kInput) naming the op or tensor: unknown indices, negative sizes or costs, a total
// beyond 2^63, two producers, a reader before the producer, an in-place pair that does not exist.
void validate(const Problem& problem);

}  // namespace reprise::schedule
