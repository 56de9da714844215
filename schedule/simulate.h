#pragma once

// The memory model, the only one: from an order of ops to the buffers that are live at each step.
//
// A *copy* is one materialization of a tensor (an SSA slot before it has an offset). A *buffer* is
// what needs an address: one copy, or a chain of copies that pass it on in place. A buffer is live
// on the half-open range of steps [start, end): from the step that writes it (0 for what is there
// before the first step) up to and including the step of its last reader. What nobody reads lives
// for the step that writes it; what is there before the first step is there at step 0 at least, so
// that no range is empty. Peak is read while an op runs: after its outputs appeared, before its
// dead inputs go, its workspace included.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schedule/problem.h"

namespace reprise::schedule {

using CopyId = base::Id<struct CopyTag>;
using BufferId = base::Id<struct BufferTag>;

struct Copy {
  TensorId tensor;
  BufferId buffer;
  std::int64_t made = -1;       // step that writes it; -1: there before the first step
  std::int64_t last_read = -1;  // last step that reads it; steps() for what stays to the end
};

struct Buffer {
  std::int64_t start = 0;  // live on [start, end)
  std::int64_t end = 0;
  Bytes bytes = 0;
};

struct Step {
  OpId op;
  BufferId workspace{};         // invalid when the op has none; lives on [step, step + 1)
  std::size_t first_read = 0;   // into Trace::read_copies, up to the next step's
  std::size_t first_write = 0;  // into Trace::written_copies
};

// An order with everything that follows from it. Flat, for orders of millions of steps.
struct Trace {
  std::vector<Step> steps;
  std::vector<CopyId> read_copies;     // of all steps; see reads()
  std::vector<CopyId> written_copies;  // of all steps; see writes()
  // What is there before the first step comes first, in tensor order; then as written.
  base::IdVector<CopyId, Copy> copies;
  base::IdVector<BufferId, Buffer> buffers;
  std::int64_t cost = 0;

  [[nodiscard]] std::span<const CopyId> reads(std::size_t step) const;   // per input of the op
  [[nodiscard]] std::span<const CopyId> writes(std::size_t step) const;  // per output
};

// Why an order is no execution of the problem: names the step, the op and the tensor.
struct OrderFault {
  std::int64_t step = 0;
  std::string message;
};

struct TraceResult {
  Trace trace;  // meaningful when !fault
  // Input not there, a non-recomputable op missing or run twice, an in-place op that destroys what
  // is read later, an output never made.
  std::optional<OrderFault> fault;
};

// O(sum of op arities). Optional in-place pairs are taken whenever they are legal at that step: the
// input is not read later, may go (neither resident nor an output), has the bytes of the output, is
// not handed to another output, and every place where the op reads it has a pair with that output.
// `choices` names algorithms that exist (CHECKed).
[[nodiscard]] TraceResult trace_order(const Problem& problem, const Order& order,
                                      const Choices& choices = {});

struct MemoryProfile {
  std::vector<Bytes> live_bytes;  // per step
  Bytes peak = 0;              // 0 for an empty order: then the bytes there before the first step
  std::int64_t peak_step = 0;  // first step that reaches it
};

// Live bytes at each step: the sum of the buffers live there. O(buffers + steps).
[[nodiscard]] MemoryProfile profile_memory(const Trace& trace);

}  // namespace reprise::schedule
