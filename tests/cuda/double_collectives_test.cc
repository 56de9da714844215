// NCCL's double: results, ranks as threads, and what a rank does that gets stuck.

#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <thread>

#include "tests/cuda/double/control.h"
#include "tests/cuda/double/device_array.h"

namespace reprise::test::cuda {
namespace {

using Floats = std::vector<float>;

// One rank in its own thread, with a device of its own.
struct Rank {
  int rank = 0;
  cudaStream_t stream{};
  ncclComm_t comm{};
};

void until_ready(ncclComm_t comm) {
  ncclResult_t status = ncclInProgress;
  while (status == ncclInProgress) {
    ASSERT_EQ(ncclCommGetAsyncError(comm, &status), ncclSuccess);
    std::this_thread::yield();
  }
  ASSERT_EQ(status, ncclSuccess);
}

// Runs body(rank) in `ranks` threads that share a communicator.
template <class Body>
void on_ranks(int ranks, Body body, bool blocking = true) {
  reset();
  set_machine({ranks, std::size_t{1} << 30, 0});
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      must(cudaSetDevice(rank));
      Rank r{rank, {}, {}};
      must(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = blocking ? 1 : 0;
      const ncclResult_t status = ncclCommInitRankConfig(&r.comm, ranks, id, rank, &config);
      ASSERT_EQ(status, blocking ? ncclSuccess : ncclInProgress);
      if (!blocking) until_ready(r.comm);
      body(r);
    });
  for (std::thread& thread : threads) thread.join();
}

ncclResult_t all_reduce(const Rank& r, const DeviceArray<float>& data) {
  return ncclAllReduce(data.get(), data.get(), data.bytes() / 4, ncclFloat32, ncclSum, r.comm,
                       r.stream);
}

TEST(DoubleCollectives, SumsAreTheSameOnAllRanks) {
  for (const int ranks : {1, 2, 3}) {
    on_ranks(ranks, [&](const Rank& r) {
      const float x = static_cast<float>(r.rank + 1);
      const DeviceArray<float> data(Floats{x, 10 * x, 100 * x});
      ASSERT_EQ(all_reduce(r, data), ncclSuccess);
      const int terms = ranks * (ranks + 1) / 2;
      const auto sum = static_cast<float>(terms);
      EXPECT_EQ(data.values(), (Floats{sum, 10 * sum, 100 * sum}));
      ASSERT_EQ(ncclCommDestroy(r.comm), ncclSuccess);
    });
  }
}

TEST(DoubleCollectives, GatherScatterAndBroadcastPutPiecesWhereTheyBelong) {
  on_ranks(2, [&](const Rank& r) {
    const float x = static_cast<float>(r.rank + 1);
    const DeviceArray<float> one(Floats{x}), two(Floats{x, 10 * x}), gathered(2), piece(1), root(1);
    ASSERT_EQ(ncclAllGather(one.get(), gathered.get(), 1, ncclFloat32, r.comm, r.stream),
              ncclSuccess);
    ASSERT_EQ(ncclReduceScatter(two.get(), piece.get(), 1, ncclFloat32, ncclMax, r.comm, r.stream),
              ncclSuccess);
    ASSERT_EQ(ncclBroadcast(one.get(), root.get(), 1, ncclFloat32, 1, r.comm, r.stream),
              ncclSuccess);
    EXPECT_EQ(gathered.values(), (Floats{1, 2}));
    EXPECT_EQ(piece.values(), (Floats{r.rank == 0 ? 2.0F : 20.0F}));
    EXPECT_EQ(root.values(), (Floats{2}));
  });
}

TEST(DoubleCollectives, OneThreadMayServeAllDevices) {
  reset();
  set_machine({2, std::size_t{1} << 30, 0});
  ncclComm_t comms[2];
  ASSERT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess);
  std::vector<DeviceArray<float>> data;
  Rank ranks[2];
  for (int rank = 0; rank < 2; ++rank) {
    must(cudaSetDevice(rank));
    ranks[rank] = {rank, {}, comms[rank]};
    must(cudaStreamCreateWithFlags(&ranks[rank].stream, cudaStreamNonBlocking));
    data.emplace_back(Floats{static_cast<float>(rank + 1)});
  }
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < 2; ++rank) ASSERT_EQ(all_reduce(ranks[rank], data[rank]), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    must(cudaSetDevice(rank));
    EXPECT_EQ(data[rank].values(), (Floats{3}));
  }
  must(cudaSetDevice(0));
}

TEST(DoubleCollectives, EverySeedGivesTheSameSumsInAGraphToo) {
  for (const Policy policy : {Policy::kRandom, Policy::kStarve, Policy::kOthersFirst}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      on_ranks(2, [&](const Rank& r) {
        set_policy(policy, seed);
        const DeviceArray<float> data(Floats{static_cast<float>(r.rank + 1)});
        must(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
        ASSERT_EQ(all_reduce(r, data), ncclSuccess);
        cudaGraph_t graph = nullptr;
        must(cudaStreamEndCapture(r.stream, &graph));
        cudaGraphExec_t exec = nullptr;
        must(cudaGraphInstantiate(&exec, graph, 0));
        for (int i = 0; i < 3; ++i) must(cudaGraphLaunch(exec, r.stream));
        EXPECT_EQ(data.values(), (Floats{12}));  // 1 + 2, 3 + 3, 6 + 6
        must(cudaGraphDestroy(graph));
      });
    }
  }
}

TEST(DoubleCollectives, ARankThatNeverComesLeavesTheOthersWaitingUntilTheyAbort) {
  on_ranks(2, [&](const Rank& r) {
    if (r.rank == 1) return;  // dead
    const DeviceArray<float> data(Floats{5});
    ASSERT_EQ(all_reduce(r, data), ncclSuccess);
    for (int poll = 0; poll < 100; ++poll) {
      ASSERT_EQ(cudaStreamQuery(r.stream), cudaErrorNotReady);
      ncclResult_t status = ncclSystemError;
      ASSERT_EQ(ncclCommGetAsyncError(r.comm, &status), ncclSuccess);
      ASSERT_EQ(status, ncclSuccess) << "within one node nobody notices";
    }
    ASSERT_EQ(ncclCommAbort(r.comm), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(r.stream), cudaSuccess);
    EXPECT_EQ(data.values(), (Floats{5}));
  });
}

TEST(DoubleCollectives, AnErrorThatATestAskedForShowsInPolls) {
  on_ranks(2, [&](const Rank& r) {
    break_communicator(r.rank, 2, ncclRemoteError);
    ncclResult_t status = ncclSuccess;
    for (const ncclResult_t expected : {ncclSuccess, ncclSuccess, ncclRemoteError}) {
      ASSERT_EQ(ncclCommGetAsyncError(r.comm, &status), ncclSuccess);
      EXPECT_EQ(status, expected);
    }
  });
}

TEST(DoubleCollectives, ACommunicatorThatDoesNotBlockQueuesLate) {
  const CollectedFaults faults;
  on_ranks(
      2,
      [&](const Rank& r) {
        const DeviceArray<float> data(Floats{1});
        ASSERT_EQ(all_reduce(r, data), ncclInProgress);
        cudaEvent_t event = nullptr;  // too early: the collective is not on the stream
        must(cudaEventCreate(&event));
        must(cudaEventRecord(event, r.stream));
        until_ready(r.comm);
        cudaStream_t other = nullptr;
        must(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
        must(cudaStreamWaitEvent(other, event, 0));
        must(enqueue(other, "use", {data.read()}, [] {}));
        must(cudaStreamSynchronize(r.stream));
        must(cudaStreamSynchronize(other));
      },
      false);
  ASSERT_EQ(faults.all().size(), 2U);
  EXPECT_NE(faults.all()[0].find("collective 'ncclAllReduce' on stream"), std::string::npos);
}

TEST(DoubleCollectives, CallsOfAGroupAreQueuedAtItsEndAndMayBeLate) {
  on_ranks(
      2,
      [&](const Rank& r) {
        const float x = static_cast<float>(r.rank + 1);
        const DeviceArray<float> a(Floats{x}), b(Floats{10 * x});
        ASSERT_EQ(ncclGroupStart(), ncclSuccess);
        ASSERT_EQ(all_reduce(r, a), ncclSuccess);
        ASSERT_EQ(all_reduce(r, b), ncclSuccess);
        ASSERT_EQ(ncclGroupEnd(), ncclInProgress);
        until_ready(r.comm);
        EXPECT_EQ(a.values(), (Floats{3}));
        EXPECT_EQ(b.values(), (Floats{30}));
      },
      false);
}

TEST(DoubleCollectives, ACommunicatorOutlivesTheGraphsThatHoldItsCollectives) {
  for (const bool in_order : {true, false}) {
    const CollectedFaults faults;
    on_ranks(1, [&](const Rank& r) {
      const DeviceArray<float> data(Floats{1});
      must(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
      ASSERT_EQ(all_reduce(r, data), ncclSuccess);
      cudaGraph_t graph = nullptr;
      must(cudaStreamEndCapture(r.stream, &graph));
      if (in_order) must(cudaGraphDestroy(graph));
      ASSERT_EQ(ncclCommAbort(r.comm), ncclSuccess);
      if (!in_order) must(cudaGraphDestroy(graph));
    });
    if (in_order) {
      EXPECT_TRUE(faults.all().empty());
    } else {
      ASSERT_EQ(faults.all().size(), 1U);
      EXPECT_NE(faults.all()[0].find("ncclCommAbort waits for ever"), std::string::npos);
    }
  }
}

TEST(DoubleCollectives, RanksThatDisagreeAreReported) {
  const CollectedFaults faults;
  on_ranks(2, [&](const Rank& r) {
    const DeviceArray<float> data(static_cast<std::size_t>(r.rank + 1));
    ASSERT_EQ(all_reduce(r, data), ncclSuccess);
    ASSERT_EQ(ncclCommAbort(r.comm), ncclSuccess);
  });
  ASSERT_EQ(faults.all().size(), 1U);
  EXPECT_NE(faults.all()[0].find("ranks disagree about collective 0"), std::string::npos);
}

TEST(DoubleCollectives, TwoRanksOnOneDeviceAreRefused) {
  reset();
  const CollectedFaults faults;
  ncclComm_t comms[2];
  const int devices[] = {0, 0};
  EXPECT_EQ(ncclCommInitAll(comms, 2, devices), ncclInvalidUsage);
  EXPECT_EQ(faults.all().size(), 1U);
}

}  // namespace
}  // namespace reprise::test::cuda
