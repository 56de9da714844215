// What a backend or program does that has no way of its own. A module holds a copy of this file.

#include <chrono>

#include "base/error.h"
#include "kernels/backend.h"

namespace reprise::kernels {

std::int64_t Program::timed_run(NodeId node, const Call& call, const graph::StepContext& context) {
  const auto begin = std::chrono::steady_clock::now();
  run(node, call, context);
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

std::string Backend::make_group_id() const {
  throw base::device_error("backend {} adds up in the host's memory only", name());
}
std::unique_ptr<DeviceSums> Backend::join_group(const std::string& /*id*/, int /*rank*/,
                                                int /*world_size*/,
                                                const Patience& /*patience*/) const {
  throw base::device_error("backend {} adds up in the host's memory only", name());
}

}  // namespace reprise::kernels
