// NCCL with the one rank that a single GPU can have.

#include <chrono>
#include <thread>

#include "tests/gpu/facts/facts.h"

namespace reprise::test::facts {
namespace {

// A communicator that does not block, once it is ready.
ncclComm_t one_rank() {
  ncclUniqueId id;
  REPRISE_MUST(ncclGetUniqueId(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  const ncclResult_t begun = ncclCommInitRankConfig(&comm, 1, id, 0, &config);
  expect(begun == ncclSuccess || begun == ncclInProgress,
         fmt::format("ncclCommInitRankConfig: status {}", static_cast<int>(begun)));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  ncclResult_t status = ncclInProgress;
  while (status == ncclInProgress) {
    REPRISE_MUST(ncclCommGetAsyncError(comm, &status));
    expect(std::chrono::steady_clock::now() < deadline, "still in progress after 20 s");
    std::this_thread::yield();
  }
  REPRISE_MUST(status);
  return comm;
}

void queue_sum(const Floats& data, std::size_t count, ncclComm_t comm, const Stream& stream) {
  ncclResult_t status =
      ncclAllReduce(data.get(), data.get(), count, ncclFloat32, ncclSum, comm, stream.get());
  while (status == ncclInProgress) REPRISE_MUST(ncclCommGetAsyncError(comm, &status));
  REPRISE_MUST(status);
}

void alone(Notes& /*notes*/) {
  const Stream stream;
  const Floats data(std::vector<float>{1.0F, 2.0F, 3.0F});
  ncclComm_t comm = one_rank();
  int ranks = 0;
  REPRISE_MUST(ncclCommCount(comm, &ranks));
  expect(ranks == 1, fmt::format("{} ranks", ranks));
  queue_sum(data, 3, comm, stream);
  stream.wait();
  expect(data.values() == (std::vector<float>{1.0F, 2.0F, 3.0F}),
         "the sum of one rank is not its part");
  REPRISE_MUST(ncclCommAbort(comm));
}

void recorded(Notes& /*notes*/) {
  const Stream stream;
  const Floats source(std::vector<float>{5.0F, 6.0F}), data(std::vector<float>{0.0F, 0.0F});
  ncclComm_t comm = one_rank();
  queue_sum(data, 2, comm, stream);  // what NCCL sets up at the first call is not for a recording
  stream.wait();
  {
    const Recording recording(stream, [&] {
      REPRISE_MUST(cudaMemcpyAsync(data.get(), source.get(), data.bytes(), cudaMemcpyDeviceToDevice,
                                   stream.get()));
      queue_sum(data, 2, comm, stream);
    });
    for (int i = 0; i < 3; ++i) {
      data.set({0.0F, 0.0F});
      recording.play(stream);
      stream.wait();
      expect(data.values() == (std::vector<float>{5.0F, 6.0F}), "the recorded sum is wrong");
    }
  }
  REPRISE_MUST(ncclCommAbort(comm));
}

}  // namespace

void add_collective_facts(std::vector<Fact>& facts) {
  facts.push_back({"NCCL sums over one rank", alone});
  facts.push_back({"NCCL's sum can be recorded with the step", recorded});
}

}  // namespace reprise::test::facts
