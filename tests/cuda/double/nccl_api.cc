// NCCL: groups, communicators and collectives.

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <set>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/collective.h"
#include "tests/cuda/double/faults.h"

using namespace reprise::test::cuda;

namespace {

// A communicator that does not block is in progress for so many polls after it was made, and after
// every eighth collective: one that is queued too late for an event recorded at once.
constexpr std::size_t kPolls = 3;
constexpr std::size_t kDeferredEvery = 8;

struct Broken {
  std::size_t after_polls = 0;
  ncclResult_t status = ncclSuccess;
};

std::set<ncclComm_t> live;
std::map<std::string, std::shared_ptr<Clique>> cliques;  // by unique id
std::map<int, Broken> broken;                            // by rank
unsigned ids = 0;

struct Group {
  int depth = 0;
  std::vector<ncclComm_t> made;
};
thread_local Group group;

template <class Body>
ncclResult_t nccl_api(const char* name, Body body) {
  return api<ncclResult_t>(name, body);
}

template <class Body>
ncclResult_t comm_api(const char* name, ncclComm_t comm, Body body) {
  return nccl_api(name, [&]() -> ncclResult_t {
    if (live.count(comm) > 0) return body();
    fault(fmt::format("{} with a communicator that is not there", name));
    return ncclInvalidArgument;
  });
}

bool complete(const Clique& clique) {
  return clique.joined == clique.members.size();
}

// Until all ranks have come; with the lock given back meanwhile.
ncclResult_t wait_for_all(const Clique& clique) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!complete(clique)) {
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
  made->polls_left = blocking ? 0 : kPolls;
  clique->members[rank] = made;
  ++clique->joined;
  live.insert(made);
  *result = made;
  engine().changed.notify_all();
  return ncclSuccess;
}

ncclResult_t init_rank(const char* name, ncclComm_t* comm, int ranks, const ncclUniqueId& id,
                       int rank, bool blocking) {
  return nccl_api(name, [&]() -> ncclResult_t {
    if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
    std::shared_ptr<Clique>& clique = cliques[std::string(id.internal, sizeof id.internal)];
    if (!clique) clique = std::make_shared<Clique>();
    if (clique->members.empty()) clique->members.resize(ranks);
    if (clique->members.size() != static_cast<std::size_t>(ranks)) return ncclInvalidArgument;
    const std::shared_ptr<Clique> kept = clique;
    const ncclResult_t status = join(comm, kept, rank, current_device(), blocking);
    if (status != ncclSuccess) return status;
    if (!blocking) return ncclInProgress;
    if (group.depth > 0) {
      group.made.push_back(*comm);
      return ncclSuccess;
    }
    return wait_for_all(*kept);
  });
}

// The rank's part becomes known to the others.
void enlist(ncclComm_t comm, const CollectiveCall& call, const void* send, void* receive,
            const OperationRef& operation) {
  const std::shared_ptr<Clique> clique = comm->clique;
  const std::size_t number = comm->collectives++;
  std::shared_ptr<Collective>& open = clique->collectives[number];
  if (!open) {
    open = std::make_shared<Collective>();
    open->call = call;
    open->parts.resize(clique->members.size());
  }
  const std::shared_ptr<Collective> collective = open;
  if (!(collective->call == call))
    fault(fmt::format("ranks disagree about collective {}: {} is not what another rank called",
                      number, operation->task.name));
  collective->parts[comm->rank] = {send, receive, operation};
  operation->task.work = [collective] { run_collective(*collective); };
  operation->arrive = [collective, clique, number] {
    if (collective->broken || ++collective->arrived < collective->parts.size()) return;
    for (const Collective::Part& part : collective->parts) engine().make_ready(part.operation);
    clique->collectives.erase(number);
  };
  auto& mine = comm->open;
  mine.erase(
      std::remove_if(mine.begin(), mine.end(), [](const auto& o) { return o.operation->done; }),
      mine.end());
  mine.push_back({operation, collective});
}

ncclResult_t collective(const char* name, ncclComm_t comm, const CollectiveCall& call,
                        const void* send, void* receive, cudaStream_t stream) {
  return comm_api(name, comm, [&]() -> ncclResult_t {
    const cudaStream_t on = engine().resolve(stream);
    if (on == nullptr || on->device != comm->device) {
      fault(fmt::format("{} on a stream that is not of the communicator's device", name));
      return ncclInvalidArgument;
    }
    if (comm->polls_left > 0 || !complete(*comm->clique)) {
      fault(fmt::format("{} on a communicator that is still in progress", name));
      return ncclInvalidUsage;
    }
    const std::size_t ranks = comm->clique->members.size();
    const std::size_t element = bytes_of(call.type);
    const bool reads = call.kind != CollectiveKind::kBroadcast || call.root == comm->rank;
    Task task{name, Kind::kCollective, {}, {}, {}};
    if (reads) task.touched.push_back({send, send_count(call, ranks) * element, false});
    task.touched.push_back({receive, receive_count(call, ranks) * element, true});
    task.enlist = [=](const OperationRef& operation) {
      enlist(comm, call, send, receive, operation);
    };
    if (comm->blocking || comm->calls++ % kDeferredEvery != 0)
      return engine().submit(on, std::move(task)) == cudaSuccess ? ncclSuccess
                                                                 : ncclUnhandledCudaError;
    comm->polls_left = kPolls;
    comm->deferred = [on, task] { engine().submit(on, task); };
    return ncclInProgress;
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

void remove(ncclComm_t comm) {
  live.erase(comm);
  comm->clique->members[comm->rank] = nullptr;
  delete comm;
}

}  // namespace

namespace reprise::test::cuda {

void break_communicator(int rank, std::size_t after_polls, int status) {
  const std::lock_guard<std::mutex> lock(engine().mutex);
  broken[rank] = {after_polls, static_cast<ncclResult_t>(status)};
}

void reset_nccl() {
  for (const ncclComm_t comm : live) delete comm;
  live.clear();
  cliques.clear();
  broken.clear();
  group = {};
}

}  // namespace reprise::test::cuda

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return nccl_api("ncclGetUniqueId", [&] {
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
  return nccl_api("ncclCommInitAll", [&]() -> ncclResult_t {
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
  return nccl_api("ncclGroupStart", [] {
    ++group.depth;
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupEnd() {
  return nccl_api("ncclGroupEnd", []() -> ncclResult_t {
    if (group.depth == 0) return ncclInvalidUsage;
    if (--group.depth > 0) return ncclSuccess;
    ncclResult_t status = ncclSuccess;
    for (const ncclComm_t comm : std::exchange(group.made, {}))
      if (status == ncclSuccess) status = wait_for_all(*comm->clique);
    return status;
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
    if (comm->polls_left > 0 && complete(*comm->clique) && --comm->polls_left == 0 &&
        comm->deferred)
      std::exchange(comm->deferred, {})();
    *status = comm->polls_left > 0 || !complete(*comm->clique) ? ncclInProgress : ncclSuccess;
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
    comm->polls_left = kPolls;
    return ncclInProgress;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return comm_api("ncclCommDestroy", comm, [&]() -> ncclResult_t {
    const std::vector<ncclComm::Open> open = comm->open;
    for (const ncclComm::Open& each : open)
      if (!engine().wait(each.operation)) return ncclSystemError;
    remove(comm);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return comm_api("ncclCommAbort", comm, [&] {
    give_up_all(comm);
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

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, std::size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return collective("ncclAllReduce", comm, {CollectiveKind::kAllReduce, count, datatype, op, 0},
                    sendbuff, recvbuff, stream);
}

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, std::size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return collective("ncclBroadcast", comm,
                    {CollectiveKind::kBroadcast, count, datatype, ncclSum, root}, sendbuff,
                    recvbuff, stream);
}

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, std::size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return collective("ncclAllGather", comm,
                    {CollectiveKind::kAllGather, sendcount, datatype, ncclSum, 0}, sendbuff,
                    recvbuff, stream);
}

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, std::size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return collective("ncclReduceScatter", comm,
                    {CollectiveKind::kReduceScatter, recvcount, datatype, op, 0}, sendbuff,
                    recvbuff, stream);
}
