#include "api/carried_state.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/error.h"

namespace reprise::api {
namespace {

// Where this rank's rows lie in the whole, in bytes.
struct Rows {
  std::size_t begin, bytes;
};

Rows rows_of(std::size_t row_bytes, std::int64_t batch, const Shard& shard) {
  return {static_cast<std::size_t>(shard.begin(batch)) * row_bytes,
          static_cast<std::size_t>(shard.count(batch)) * row_bytes};
}

std::size_t row_bytes_of(const Session::Variable& variable, std::size_t bytes) {
  const auto rows = static_cast<std::size_t>(variable.shape.front());
  REPRISE_CHECK(bytes % rows == 0, "'{}' has {} bytes in {} rows", variable.name, bytes, rows);
  return bytes / rows;
}

}  // namespace

graph::Shape whole_shape(const Session::Variable& variable, std::int64_t batch) {
  graph::Shape shape = variable.shape;
  if (variable.carried) shape.front() = batch;
  return shape;
}

// A sum in which all terms but one are zeros is a gather; over integers it keeps every bit.
WholeStates gather_carried_states(const Session& session, std::int64_t batch, const Shard& shard,
                                  runtime::comm::Communicator& ranks) {
  WholeStates states;
  for (const Session::Variable& variable : session.variables()) {
    if (!variable.carried) continue;
    const auto own = session.read(variable.name);
    const std::size_t row_bytes = row_bytes_of(variable, own.size());
    const Rows rows = rows_of(row_bytes, batch, shard);
    WholeState& whole = states[variable.name];
    whole.shape = whole_shape(variable, batch);
    whole.plain.resize(static_cast<std::size_t>(batch) * row_bytes);
    std::copy_n(own.begin(), rows.bytes,
                whole.plain.begin() + static_cast<std::ptrdiff_t>(rows.begin));
    ranks.wait(ranks.start_all_reduce(whole.plain, runtime::comm::ElementType::kI32,
                                      runtime::comm::Reduction::kSum));
  }
  return states;
}

void scatter_carried_states(const runtime::Snapshot* snapshot, std::int64_t batch,
                            const Shard& shard, Session& session,
                            runtime::comm::Communicator& ranks) {
  for (const Session::Variable& variable : session.variables()) {
    if (!variable.carried) continue;
    auto own = session.read(variable.name);
    const std::size_t row_bytes = row_bytes_of(variable, own.size());
    std::vector<std::byte> whole(static_cast<std::size_t>(batch) * row_bytes);
    if (snapshot != nullptr) {
      whole = runtime::find_tensor(*snapshot, variable.name, variable.dtype,
                                   whole_shape(variable, batch), "snapshot")
                  .data;
    }
    ranks.broadcast(whole, 0);
    const Rows rows = rows_of(row_bytes, batch, shard);
    std::fill(own.begin(), own.end(), std::byte{0});
    std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(rows.begin), rows.bytes, own.begin());
    session.write(variable.name, own);
  }
}

}  // namespace reprise::api
