#pragma once

// The communicators of this build, for tests that hold for all of them.

#include <vector>

#include "runtime/comm/gloo_communicator.h"
#include "runtime/comm/socket.h"
#include "tests/runtime/comm_group.h"

namespace reprise::runtime::comm::testing {

// Gloo's ranks may well be threads: each has a store connection, sockets and a device of its own.
inline GroupKind gloo_kind() {
  return {"gloo", [](const CommOptions& options) -> MakeEnd {
            auto listening = std::make_shared<Socket>(listen_at({"127.0.0.1", 0, "a test"}));
            GlooOptions gloo{.environment = {.world_size = options.world_size,
                                             .master_address = "127.0.0.1",
                                             .store_port = local_port(*listening),
                                             .store_port_origin = "a test",
                                             .job = "test"},
                             .timeout = options.timeout,
                             .variables = [](const char*) { return nullptr; }};
            return [gloo, listening](int rank) mutable {
              GlooOptions mine = gloo;
              mine.environment.rank = rank;
              if (rank == 0) mine.store_socket = listening->release();
              return make_gloo_communicator(mine);
            };
          }};
}

inline bool has_gloo() {
  try {
    return !gloo_version().empty();
  } catch (const base::Error&) {
    return false;
  }
}

inline std::vector<GroupKind> group_kinds() {
  if (!has_gloo()) return {threads_kind()};
  return {threads_kind(), gloo_kind()};
}

}  // namespace reprise::runtime::comm::testing
