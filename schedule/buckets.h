#pragma once

// Which sums over ranks of a schedule are one operation.
//
//     instructions:  reduce a . reduce b . . reduce c . await a . await b . await c
//     buckets:       [a        b]            [c]
//                               └ starts here └ and here
//
// The all_reduce nodes are taken in the order in which the schedule runs them, as many as fill a
// bucket. An operation starts with the last of its members; until then the others' bytes wait
// where they are, so a bucket takes none of its own. The cut is made ahead of time and from the
// schedule alone: it is the same on all ranks.

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace reprise::schedule {

struct Bucket {
  std::vector<NodeId> members;  // all_reduce nodes, in the order of the schedule
  std::int64_t start = 0;       // instruction of the last member
  Bytes bytes = 0;              // of all members
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

// In the order of their starts. A bucket takes graph::bucket_target(most_bytes, all bytes that are
// summed), or one member of more than that; it also ends where the schedule awaits a member. A sum
// that the schedule awaits before it begins another one is a bucket by itself, and starts at once
// while another one fills. Each all_reduce must run exactly once (CHECKed).
[[nodiscard]] std::vector<Bucket> cut_buckets(const graph::PreparedGraph& prepared,
                                              const Schedule& schedule, Bytes most_bytes);

}  // namespace reprise::schedule
