// NCCL: collectives.

#include <algorithm>
#include <fmt/format.h>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/collective.h"
#include "tests/cuda/double/faults.h"

using namespace reprise::test::cuda;

namespace {

// On a communicator that does not block every eighth one, or group of them, is in progress for some
// polls: queued too late for an event that is recorded at once.
constexpr std::size_t kDeferredEvery = 8;

// The rank's part becomes known to the others.
void enlist(ncclComm_t comm, const CollectiveCall& call, const void* send, void* receive,
            const OperationRef& operation) {
  if (!is_live(comm)) {
    fault(fmt::format("{} of a graph whose communicator is not there", operation->task.name));
    return;
  }
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
    if (comm->polls_left > 0 || !comm->clique->complete()) {
      fault(fmt::format("{} on a communicator that is still in progress", name));
      return ncclInvalidUsage;
    }
    const std::size_t ranks = comm->clique->members.size();
    const std::size_t element = bytes_of(call.type);
    const bool reads = call.kind != CollectiveKind::kBroadcast || call.root == comm->rank;
    Task task{name, Kind::kCollective, {}, {}, {}};
    if (reads) task.touched.push_back({send, send_count(call, ranks) * element, false});
    task.touched.push_back({receive, receive_count(call, ranks) * element, true});
    task.enlist = [=, recorded = comm->recorded](const OperationRef& operation) {
      enlist(comm, call, send, receive, operation);
    };
    if (group().depth == 0) return submit({{comm, on, std::move(task)}});
    group().calls.push_back({comm, on, std::move(task)});
    return ncclSuccess;
  });
}

}  // namespace

namespace reprise::test::cuda {

ncclResult_t submit(std::vector<Group::Call> calls) {
  ncclResult_t status = ncclSuccess;
  while (!calls.empty()) {  // one communicator after the other
    const ncclComm_t comm = calls.front().comm;
    const auto others = std::stable_partition(calls.begin(), calls.end(),
                                              [&](const auto& call) { return call.comm == comm; });
    const std::vector<Group::Call> mine(calls.begin(), others);
    calls.erase(calls.begin(), others);
    const auto queue_all = [mine] {
      for (const Group::Call& call : mine)
        if (engine().submit(call.stream, call.task) != cudaSuccess) return false;
      return true;
    };
    if (comm->blocking || comm->calls++ % kDeferredEvery != 0) {
      if (!queue_all()) return ncclUnhandledCudaError;
      continue;
    }
    comm->polls_left = kPollsInProgress;
    comm->deferred = queue_all;
    status = ncclInProgress;
  }
  return status;
}

}  // namespace reprise::test::cuda

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
