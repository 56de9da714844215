#pragma once

// From a decision to an order: the one place where "recompute" becomes runs of ops.
//
// The forward part is cut into segments. While it runs for the first time, what is live at a cut
// that is held, and what the last segment makes, stays; all else is dropped after its last forward
// reader. The backward part follows in program order; an op that misses an input has it made again
// from what is there, as little as possible:
//
//     program:   [ segment 0 | segment 1 | segment 2 ]  backward ops of 2, 1, 0
//     order:       run 0       run 1       run 2          b2   re-run 1  b1   re-run 0  b0
//
// Within the segment that is live, `hold` says what stays for the backward ops to come. With fewer
// slots than cuts, which cuts are held changes as the backward part moves to the front, the way
// Griewank and Walther's revolve (2000) places its checkpoints. Nothing here assumes a chain:
// everything is demand, cuts may be crossed by any number of tensors.
//
// Ops that destroy a version of a tensor which a later re-run still reads (an update of a
// parameter) are delayed until after that re-run; see Structure::delayable.

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/structure.h"

namespace reprise::planner {

enum class Hold : std::uint8_t {
  kSave,       // stays from its first run on, whichever segment is live
  kKeep,       // stays while its segment is live
  kOnce,       // dropped after the forward part; made again once a backward op needs it, then stays
  kTransient,  // made again for each op that needs it
};

struct Decision {
  std::vector<Hold> hold;       // per tensor
  std::vector<Index> segments;  // first op of each segment, ascending, the first one 0
  Index slots = 0;              // cuts held at a time
};

// One segment, everything that the backward part reads stays.
[[nodiscard]] Decision keep_everything(const Structure& structure);

// Nothing when the order would have more than `max_steps` steps.
[[nodiscard]] std::optional<schedule::Order> make_order(const Structure& structure,
                                                        const Decision& decision,
                                                        std::int64_t max_steps);

// Of n segments that follow a held state, with m slots counting that state: how many to advance
// before the next one is held. n >= 2, m >= 2.
[[nodiscard]] Index revolve_advance(Index n, Index m);

}  // namespace reprise::planner
