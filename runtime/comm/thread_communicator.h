#pragma once

// Ranks that are threads of one process. Rank r adds up part r of a tensor straight from the
// buffers of all ranks and writes the result into all of them, so nothing is copied to the side.

#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"

namespace reprise::runtime::comm {

// One end for each rank, in order; `options.rank` is not read. Each is used and destroyed by one
// thread. A communicator that is destroyed while others of its group wait for it fails them: "rank
// 2 left the group".
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_thread_group(
    const CommOptions& options);

}  // namespace reprise::runtime::comm
