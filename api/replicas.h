#pragma once

// What the ranks of one training run must have in common, and how they come to have it.

#include <cstdint>

#include "api/session.h"
#include "runtime/comm/communicator.h"

namespace reprise::api {

// All ranks run the same instructions on the same layouts: sums pair up by order, and bytes by
// place. Error(kInput) naming the ranks whose plan is not rank 0's.
void require_same_plan(const schedule::PlannedStep& step, Bytes bucket_bytes,
                       runtime::comm::Communicator& ranks);

// Every persistent value and the step counter of rank 0, to all; but for carried states, of which
// each rank has its own rows.
void copy_from_first_rank(Session& session, runtime::comm::Communicator& ranks);

// The statistics of batch norm that rank 0 has, and that snapshots have, to all: for an evaluation
// that all share. Training reads none of them.
void copy_statistics_from_first_rank(Session& session, runtime::comm::Communicator& ranks);

// 64-bit hash over what must be equal on all ranks: parameters and optimizer state. (Statistics of
// batch norm and carried states are each rank's own.)
[[nodiscard]] std::uint64_t replica_hash(const Session& session);

// Error(kInternal) naming the ranks whose hash is not rank 0's.
void require_same_replicas(const Session& session, runtime::comm::Communicator& ranks);

}  // namespace reprise::api
