#pragma once

// The ranks of a run whose arenas lie in the memory of devices, as a group of those.

#include <memory>

#include "kernels/backend.h"
#include "runtime/comm/communicator.h"

namespace reprise::api {

// This rank's end of the group; null for a backend in the host's memory. Rank 0 makes the group's
// id. When one rank cannot join, all end with an error that names it; `ranks` outlives the group.
[[nodiscard]] std::unique_ptr<kernels::DeviceSums> join_device_group(
    const kernels::Backend& backend, runtime::comm::Communicator& ranks);

}  // namespace reprise::api
