#pragma once

// The decisions that the strategies choose among. None of them depends on a budget.

#include <functional>
#include <string>
#include <vector>

#include "planner/decision.h"
#include "planner/frontier.h"

namespace reprise::planner {

// The forward part cut into k segments that make about the same number of bytes each; near each
// even share the cut that the fewest bytes cross. May return fewer where ops do not suffice.
[[nodiscard]] std::vector<Index> cut_evenly(const Structure& structure, Index k);

// Per forward op, the bytes that are made before it and read by it or a later forward op.
[[nodiscard]] std::vector<Bytes> crossing_bytes(const Structure& structure);

// Largest k that makes sense.
[[nodiscard]] Index most_segments(const Structure& structure);

// k segments, all cuts held; with a plan's label "segments(k)".
void offer_segments(const Structure& structure, Index k, Frontier& frontier);

// The plans of the strategies `segments` (when it chooses k), `sqrt_n` and `revolve`.
void offer_segments_of_any_number(const Structure& structure, Frontier& frontier);
void offer_sqrt_n(const Structure& structure, Frontier& frontier);
void offer_revolve(const Structure& structure, const std::function<bool()>& stop,
                   Frontier& frontier);

// Many: segments, revolve over segments, and what is cheap for its bytes made again besides.
// The effort is bounded by the size of the problem, not by a clock.
void offer_all(const Structure& structure, Frontier& frontier);

}  // namespace reprise::planner
