// Joins the processes of a job: store, roll of members, addresses, Gloo's connections.

#include "runtime/comm/gloo_communicator.h"

#include <csignal>
#include <cstdlib>
#include <gloo/config.h>
#include <utility>

#include "base/error.h"
#include "runtime/comm/gloo/gloo_group.h"
#include "runtime/comm/network_interface.h"
#include "runtime/comm/socket.h"
#include "runtime/comm/thread_communicator.h"

namespace reprise::runtime::comm {
namespace {

void ignore_broken_pipes() {
  struct sigaction old = {};
  if (sigaction(SIGPIPE, nullptr, &old) == 0 && old.sa_handler == SIG_DFL)
    std::signal(SIGPIPE, SIG_IGN);
}

// A group's own port, for a rank that has to host the store.
Socket store_socket(const GlooOptions& options, const Endpoint& store) {
  if (options.store_socket < 0) return listen_at(store);
  set_nonblocking(options.store_socket);
  return Socket(options.store_socket);
}

struct Place {
  std::string address;
  std::string origin;  // why this one
};

// The address at which the other ranks will find this one.
Place own_place(const GlooOptions& options, const std::string& towards_store) {
  const Variables variables =
      options.variables ? options.variables
                        : [](const char* name) -> const char* { return std::getenv(name); };
  const auto all = list_network_interfaces();
  for (const char* variable : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
    if (const auto chosen = chosen_interface(all, variable, variables))
      return {chosen->address, fmt::format("{}, by {}", chosen->name, variable)};
  }
  for (const NetworkInterface& each : all) {
    if (each.address == towards_store)
      return {towards_store, fmt::format("{}, the way to rank 0", each.name)};
  }
  return {towards_store, "the way to rank 0"};
}

}  // namespace

std::string gloo_version() {
  return fmt::format("Gloo {}.{}.{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
}

std::unique_ptr<Communicator> make_gloo_communicator(const GlooOptions& options) {
  const RankEnvironment& environment = options.environment;
  const CommOptions comm{.rank = environment.rank,
                         .world_size = environment.world_size,
                         .timeout = options.timeout,
                         .name = options.name};
  if (environment.world_size == 1) return std::move(make_thread_group(comm).front());
  ignore_broken_pipes();
  const Endpoint store{environment.master_address, environment.store_port,
                       environment.store_port_origin};
  GlooGroup group;
  if (environment.rank == 0) {
    group.server = std::make_unique<StoreServer>(
        store_socket(options, store),
        StoreOptions{environment.job, environment.world_size, options.timeout});
  }
  group.member_options = {.job = environment.job,
                          .rank = environment.rank,
                          .world_size = environment.world_size,
                          .store = store,
                          .timeout = options.timeout,
                          .failed = options.failed};
  auto communicator =
      make_gloo_group(comm, std::move(group), [&](const std::string& towards_store) {
        const Place place = own_place(options, towards_store);
        if (options.note) {
          options.note(fmt::format("rank {} of {} is at {} ({}); store of rank 0 at {}",
                                   environment.rank, environment.world_size, place.address,
                                   place.origin, store.text()));
        }
        return place.address;
      });
  return communicator;
}

}  // namespace reprise::runtime::comm
