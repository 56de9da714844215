#pragma once

// Communicators of NCCL's double: ranks are threads of one process, or devices that one thread
// serves. A collective runs when the parts of all ranks have come to the head of their streams;
// when one never comes, the others stay where they are until they are aborted.

#include <cstddef>
#include <map>
#include <memory>
#include <nccl.h>
#include <vector>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/engine.h"
#include "tests/cuda/double/faults.h"

namespace reprise::test::cuda {

enum class CollectiveKind { kAllReduce, kBroadcast, kAllGather, kReduceScatter };

// What all ranks must agree on.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::size_t count = 0;  // as the caller gave it
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  bool operator==(const CollectiveCall&) const = default;
};

struct Collective {
  struct Part {
    const void* send = nullptr;
    void* receive = nullptr;
    OperationRef operation;
  };
  CollectiveCall call;
  std::vector<Part> parts;  // by rank
  std::size_t arrived = 0;
  bool computed = false;
  bool broken = false;  // a rank gave it up before: the others wait for ever
};

// What the operation of a part does: the first one computes for all of them.
void run_collective(Collective& collective);
[[nodiscard]] std::size_t bytes_of(ncclDataType_t type);
[[nodiscard]] std::size_t send_count(const CollectiveCall& call, std::size_t ranks);
[[nodiscard]] std::size_t receive_count(const CollectiveCall& call, std::size_t ranks);

// Ranks that found each other by an id.
struct Clique {
  std::vector<ncclComm_t> members;  // by rank; null until it came
  std::size_t joined = 0;
  std::map<std::size_t, std::shared_ptr<Collective>> collectives;  // by their number, while open

  [[nodiscard]] bool complete() const { return joined == members.size(); }
};

// How many polls a communicator that does not block is in progress.
constexpr std::size_t kPollsInProgress = 3;

// A call with a communicator, as api() does it.
[[nodiscard]] bool is_live(ncclComm_t comm);
template <class Body>
ncclResult_t comm_api(const char* name, ncclComm_t comm, Body body) {
  return api<ncclResult_t>(name, [&]() -> ncclResult_t {
    if (is_live(comm)) return body();
    fault(std::string(name) + " with a communicator that is not there");
    return ncclInvalidArgument;
  });
}

}  // namespace reprise::test::cuda

struct ncclComm {
  std::shared_ptr<reprise::test::cuda::Clique> clique;
  int rank = 0;
  int device = 0;
  bool blocking = true;
  std::size_t polls_left = 0;      // of ncclCommGetAsyncError, until it is no longer in progress
  std::function<void()> deferred;  // what is then done
  std::size_t calls = 0;
  std::size_t collectives = 0;  // queued, those of graphs at each launch
  struct Open {
    reprise::test::cuda::OperationRef operation;
    std::shared_ptr<reprise::test::cuda::Collective> collective;
  };
  std::vector<Open> open;
  std::size_t polls = 0;
  // Shared with every collective that a graph has recorded.
  std::shared_ptr<int> recorded = std::make_shared<int>();
};

namespace reprise::test::cuda {

// What a thread has said between ncclGroupStart and ncclGroupEnd.
struct Group {
  struct Call {
    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    Task task;
  };
  int depth = 0;
  std::vector<ncclComm_t> made;
  std::vector<Call> calls;
};
[[nodiscard]] Group& group();

// Queues the calls of one group, or one call alone.
[[nodiscard]] ncclResult_t submit(std::vector<Group::Call> calls);

}  // namespace reprise::test::cuda
