#pragma once

// Offset assignment: buffers with lifetimes in, offsets out. No device, no pointers, no graph.

#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "schedule/simulate.h"

namespace reprise::planner {

using base::Bytes;

struct PackingOptions {
  Bytes alignment = 64;
  // Effort of the search, in nodes of about a microsecond (0: greedy orders only). Never a clock.
  std::int64_t search_nodes = 20'000;
  Bytes enough = 0;  // the search ends with an arena of this size, even where a smaller one exists
};

struct Packing {
  std::vector<Bytes> offsets;        // per buffer
  Bytes arena = 0;                   // largest offset + bytes
  Bytes lower_bound = 0;             // largest live sum: no packing is smaller
  bool too_large_to_search = false;  // more effort would change nothing
  // arena / lower_bound - 1; 0 when both are 0
  [[nodiscard]] double fragmentation() const;
};

// Best of a portfolio: buffers live for the whole step (start 0, end the largest end) lie at the
// bottom in index order - so two problems that list the same persistent tensors first place them
// alike, which is how evaluation shares the parameters of training - the others as portfolio.h
// says, within `search_nodes`. Buffers whose [start, end) ranges meet never overlap. Zero-byte
// buffers conflict with nothing. `stop` is asked now and then; true ends the search with the best
// so far (the caller owns the clock). Deterministic without it. Throws Error(kInput) for negative
// sizes or empty lifetimes of non-empty buffers.
[[nodiscard]] Packing pack(const std::vector<schedule::Buffer>& buffers,
                           const PackingOptions& options = {},
                           const std::function<bool()>& stop = {});

}  // namespace reprise::planner
