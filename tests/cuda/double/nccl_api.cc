// NCCL: groups and communicators.

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <set>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/collective.h"
#include "tests/cuda/double/faults.h"

using namespace reprise::test::cuda;

namespace {

struct Broken {
  std::size_t after_polls = 0;
  ncclResult_t status = ncclSuccess;
};

std::set<ncclComm_t> live;
std::map<std::string, std::shared_ptr<Clique>> cliques;  // by unique id
std::map<int, Broken> broken;                            // by rank
unsigned ids = 0;

// Until all ranks have come; with the lock given back meanwhile.
ncclResult_t wait_for_all(const Clique& clique) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!clique.complete()) {
    if (std::chrono::steady_clock::now() > deadline) return ncclSystemError;
    engine().changed.wait_for(engine().mutex, std::chrono::milliseconds(20));
  }
  return ncclSuccess;
}

ncclResult_t join(ncclComm_t* result, const std::shared_ptr<Clique>& clique, int rank, int device,
                  bool blocking) {
  if (machine().status != 0) return ncclUnhandledCudaError;
  if (clique->members.at(rank) != nullptr) {
    fault(fmt::format("two ranks {} of one communicator", rank));
    return ncclInvalidUsage;
  }
  for (const ncclComm_t other : clique->members)
    if (other != nullptr && other->device == device) {
      fault(fmt::format("ranks {} and {} of one communicator share device {}", other->rank, rank,
                        device));
      return ncclInvalidUsage;
    }
  auto* const made = new ncclComm;
  made->clique = clique;
  made->rank = rank;
  made->device = device;
  made->blocking = blocking;
  made->polls_left = blocking ? 0 : kPollsInProgress;
  clique->members[rank] = made;
  ++clique->joined;
  live.insert(made);
  *result = made;
  engine().changed.notify_all();
  return ncclSuccess;
}

ncclResult_t init_rank(const char* name, ncclComm_t* comm, int ranks, const ncclUniqueId& id,
                       int rank, bool blocking) {
  return api<ncclResult_t>(name, [&]() -> ncclResult_t {
    if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
    std::shared_ptr<Clique>& clique = cliques[std::string(id.internal, sizeof id.internal)];
    if (!clique) clique = std::make_shared<Clique>();
    if (clique->members.empty()) clique->members.resize(ranks);
    if (clique->members.size() != static_cast<std::size_t>(ranks)) return ncclInvalidArgument;
    const std::shared_ptr<Clique> kept = clique;
    const ncclResult_t status = join(comm, kept, rank, current_device(), blocking);
    if (status != ncclSuccess) return status;
    if (!blocking) return ncclInProgress;
    if (group().depth > 0) {
      group().made.push_back(*comm);
      return ncclSuccess;
    }
    return wait_for_all(*kept);
  });
}

// The communicator's parts of collectives end without effect; those of the others never do.
void give_up_all(ncclComm_t comm) {
  for (const ncclComm::Open& open : comm->open) {
    if (!open.collective->computed) {
      open.collective->broken = true;
      for (const Collective::Part& part : open.collective->parts)
        if (part.operation && part.operation != open.operation) engine().hold(part.operation);
    }
    engine().give_up(open.operation);
  }
  comm->open.clear();
}

// As long as a graph holds one of its collectives, the communicator stays; the real one for ever.
void await_graphs(const char* name, ncclComm_t comm) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (comm->recorded.use_count() > 1) {
    if (std::chrono::steady_clock::now() > deadline) {
      fault(fmt::format("{} waits for ever: a graph holds a collective of rank {}", name,
                        comm->rank));
      return;
    }
    engine().changed.wait_for(engine().mutex, std::chrono::milliseconds(5));
  }
}

void remove(ncclComm_t comm) {
  live.erase(comm);
  comm->clique->members[comm->rank] = nullptr;
  delete comm;
}

}  // namespace

namespace reprise::test::cuda {

bool is_live(ncclComm_t comm) {
  return live.count(comm) > 0;
}

void break_communicator(int rank, std::size_t after_polls, int status) {
  const std::lock_guard<std::mutex> lock(engine().mutex);
  broken[rank] = {after_polls, static_cast<ncclResult_t>(status)};
}

void reset_nccl() {
  for (const ncclComm_t comm : live) delete comm;
  live.clear();
  cliques.clear();
  broken.clear();
  group() = {};
}

Group& group() {
  thread_local Group mine;
  return mine;
}

}  // namespace reprise::test::cuda

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return api<ncclResult_t>("ncclGetUniqueId", [&] {
    std::memset(id, 0, sizeof *id);
    std::snprintf(id->internal, sizeof id->internal, "double %u", ++ids);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return init_rank("ncclCommInitRank", comm, nranks, commId, rank, true);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config) {
  const bool blocking = config == nullptr || config->blocking != 0;
  return init_rank("ncclCommInitRankConfig", comm, nranks, commId, rank, blocking);
}

ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return api<ncclResult_t>("ncclCommInitAll", [&]() -> ncclResult_t {
    const auto clique = std::make_shared<Clique>();
    clique->members.resize(ndev);
    for (int rank = 0; rank < ndev; ++rank) {
      const int device = devlist == nullptr ? rank : devlist[rank];
      const ncclResult_t status = join(comm + rank, clique, rank, device, true);
      if (status != ncclSuccess) return status;
    }
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupStart() {
  return api<ncclResult_t>("ncclGroupStart", [] {
    ++group().depth;
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupEnd() {
  return api<ncclResult_t>("ncclGroupEnd", []() -> ncclResult_t {
    if (group().depth == 0) return ncclInvalidUsage;
    if (--group().depth > 0) return ncclSuccess;
    ncclResult_t status = ncclSuccess;
    for (const ncclComm_t comm : std::exchange(group().made, {}))
      if (status == ncclSuccess) status = wait_for_all(*comm->clique);
    if (status != ncclSuccess) return status;
    return submit(std::exchange(group().calls, {}));
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* status) {
  return comm_api("ncclCommGetAsyncError", comm, [&] {
    ++comm->polls;
    const auto fails = broken.find(comm->rank);
    if (fails != broken.end() && comm->polls > fails->second.after_polls) {
      *status = fails->second.status;
      return ncclSuccess;
    }
    if (comm->polls_left > 0 && comm->clique->complete() && --comm->polls_left == 0 &&
        comm->deferred)
      std::exchange(comm->deferred, {})();
    *status = comm->polls_left > 0 || !comm->clique->complete() ? ncclInProgress : ncclSuccess;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return comm_api("ncclCommFinalize", comm, [&]() -> ncclResult_t {
    if (comm->blocking) {
      const std::vector<ncclComm::Open> open = comm->open;
      for (const ncclComm::Open& each : open)
        if (!engine().wait(each.operation)) return ncclSystemError;
      return ncclSuccess;
    }
    comm->polls_left = kPollsInProgress;
    return ncclInProgress;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return comm_api("ncclCommDestroy", comm, [&]() -> ncclResult_t {
    const std::vector<ncclComm::Open> open = comm->open;
    for (const ncclComm::Open& each : open)
      if (!engine().wait(each.operation)) return ncclSystemError;
    comm->deferred = nullptr;
    await_graphs("ncclCommDestroy", comm);
    remove(comm);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return comm_api("ncclCommAbort", comm, [&] {
    give_up_all(comm);
    comm->deferred = nullptr;
    await_graphs("ncclCommAbort", comm);
    remove(comm);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return comm_api("ncclCommCount", comm, [&] {
    *count = static_cast<int>(comm->clique->members.size());
    return ncclSuccess;
  });
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return comm_api("ncclCommUserRank", comm, [&] {
    *rank = comm->rank;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return comm_api("ncclCommCuDevice", comm, [&] {
    *device = comm->device;
    return ncclSuccess;
  });
}

const char* ncclGetErrorString(ncclResult_t status) {
  switch (status) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "operation in progress";
    default:
      return "an error of another kind";
  }
}

const char* ncclGetLastError(ncclComm_t) {
  return "";
}
