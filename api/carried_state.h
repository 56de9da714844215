#pragma once

// Recurrent state that is carried from batch to batch. A rank has the rows of its own items; a
// snapshot has those of the whole global batch, in the order of its items, so that any number of
// ranks can go on from it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/session.h"
#include "api/shard.h"
#include "runtime/comm/communicator.h"
#include "runtime/snapshot.h"

namespace reprise::api {

struct WholeState {
  graph::Shape shape;  // [items of the global batch, ...]
  std::vector<std::byte> plain;
};
using WholeStates = std::map<std::string, WholeState, std::less<>>;  // by name of the variable

// All ranks take part, and all get the whole. Empty for a model that carries nothing.
[[nodiscard]] WholeStates gather_carried_states(const Session& session, std::int64_t batch,
                                                const Shard& shard,
                                                runtime::comm::Communicator& ranks);

// Rank 0 has a snapshot whose tensors fit; all ranks write their rows of it, and zeros where they
// have padding.
void scatter_carried_states(const runtime::Snapshot* snapshot, std::int64_t batch,
                            const Shard& shard, Session& session,
                            runtime::comm::Communicator& ranks);

// The shape that a variable of one rank has in a snapshot.
[[nodiscard]] graph::Shape whole_shape(const Session::Variable& variable, std::int64_t batch);

}  // namespace reprise::api
