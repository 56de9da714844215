// Recording streams into a graph: what is recorded, what is refused, and the order when it runs.

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/cuda/double/control.h"
#include "tests/cuda/double/device_array.h"

namespace reprise::test::cuda {
namespace {

class DoubleGraph : public ::testing::Test {
 protected:
  void SetUp() override {
    reset();
    must(cudaStreamCreateWithFlags(&main_, cudaStreamNonBlocking));
    must(cudaStreamCreateWithFlags(&side_, cudaStreamNonBlocking));
    must(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming));
    must(cudaEventCreateWithFlags(&join_, cudaEventDisableTiming));
  }
  void begin() { must(cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal)); }
  cudaGraphExec_t end() {
    cudaGraph_t graph = nullptr;
    must(cudaStreamEndCapture(main_, &graph));
    cudaGraphExec_t exec = nullptr;
    must(cudaGraphInstantiate(&exec, graph, 0));
    must(cudaGraphDestroy(graph));
    return exec;
  }
  // *to = *from + add
  void queue_add(cudaStream_t stream, int* to, const int* from, int add) {
    must(enqueue(stream, "add", {{from, sizeof(int), false}, {to, sizeof(int), true}},
                 [=] { *translated(to) = *translated(from) + add; }));
  }
  void fork() {
    must(cudaEventRecord(fork_, main_));
    must(cudaStreamWaitEvent(side_, fork_, 0));
  }
  void join() {
    must(cudaEventRecord(join_, side_));
    must(cudaStreamWaitEvent(main_, join_, 0));
  }
  cudaStream_t main_{}, side_{};
  cudaEvent_t fork_{}, join_{};
};

TEST_F(DoubleGraph, WhatIsRecordedDoesNotRun) {
  set_policy(Policy::kEager);
  const DeviceArray<int> data({1, 0});
  begin();
  queue_add(main_, data.get() + 1, data.get(), 10);
  const cudaGraphExec_t graph = end();
  EXPECT_EQ(data.values()[1], 0);
  must(cudaGraphLaunch(graph, main_));
  EXPECT_EQ(data.values()[1], 11);
}

TEST_F(DoubleGraph, EveryLaunchReadsPinnedMemoryAnew) {
  const DeviceArray<int> data(std::vector<int>{0});
  int* pinned = nullptr;
  must(cudaMallocHost(&pinned, sizeof *pinned));
  begin();
  must(cudaMemcpyAsync(data.get(), pinned, sizeof *pinned, cudaMemcpyHostToDevice, main_));
  queue_add(main_, data.get(), data.get(), 1);
  const cudaGraphExec_t graph = end();
  for (int value = 5; value < 8; ++value) {
    host_access(pinned, sizeof *pinned, true);
    *pinned = value;
    must(cudaGraphLaunch(graph, main_));
    must(cudaStreamSynchronize(main_));
    EXPECT_EQ(data.values()[0], value + 1);
  }
}

TEST_F(DoubleGraph, BranchesAreOrderedByTheirEventsWhateverTheSeed) {
  for (const Policy policy : {Policy::kRandom, Policy::kStarve, Policy::kOthersFirst}) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      SetUp();
      set_policy(policy, seed);
      const DeviceArray<int> data({1, 0, 0, 0});
      int* const p = data.get();
      begin();
      queue_add(main_, p, p, 1);
      fork();
      queue_add(side_, p + 1, p, 10);
      queue_add(main_, p + 2, p, 100);
      join();
      queue_add(main_, p + 3, p + 1, 1000);
      const cudaGraphExec_t graph = end();
      must(cudaGraphLaunch(graph, main_));
      must(cudaGraphLaunch(graph, side_));  // one after the other, whatever their streams
      EXPECT_EQ(data.values(), (std::vector<int>{3, 13, 103, 1013})) << "seed " << seed;
    }
  }
}

TEST_F(DoubleGraph, AMissingWaitInsideIsReportedWhenItIsLaunched) {
  const DeviceArray<int> data({1, 0, 0});
  int* const p = data.get();
  begin();
  fork();
  queue_add(main_, p + 1, p, 1);
  queue_add(side_, p + 2, p + 1, 1);  // forked before p + 1 was written
  join();
  const cudaGraphExec_t graph = end();
  const CollectedFaults faults;
  must(cudaGraphLaunch(graph, main_));
  ASSERT_EQ(faults.all().size(), 1U);
  EXPECT_EQ(faults.all()[0],
            "unordered: kernel 'add' in node 0 of graph 1 writes and kernel 'add' in node 1 of "
            "graph 1 reads bytes [4, 8) of allocation 1 (12 bytes); neither waits for the other");
  must(cudaStreamSynchronize(main_));
}

TEST_F(DoubleGraph, WorkOutsideIsOrderedByTheStreamOfTheLaunch) {
  const DeviceArray<int> data({1, 0, 0});
  int* const p = data.get();
  begin();
  queue_add(main_, p + 1, p, 1);
  const cudaGraphExec_t graph = end();
  must(cudaGraphLaunch(graph, main_));
  queue_add(main_, p + 2, p + 1, 1);
  const CollectedFaults faults;
  queue_add(side_, p + 2, p + 1, 1);
  EXPECT_EQ(faults.all().size(), 2U);  // p + 1 of the graph, p + 2 of the kernel behind it
  must(cudaDeviceSynchronize());
}

TEST_F(DoubleGraph, WaitingWhileRecordingIsRefusedAndSpoilsTheRecording) {
  const DeviceArray<int> data({1, 0});
  int host = 0;
  void* memory = nullptr;
  const std::vector<std::function<cudaError_t()>> calls = {
      [&] { return cudaStreamSynchronize(main_); },
      [&] { return cudaStreamQuery(main_); },
      [&] { return cudaDeviceSynchronize(); },
      [&] { return cudaMalloc(&memory, 4); },
      [&] { return cudaMemcpy(&host, data.get(), 4, cudaMemcpyDeviceToHost); },
      [&] { return cudaMemcpyAsync(data.get(), &host, 4, cudaMemcpyHostToDevice, main_); },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    begin();
    EXPECT_EQ(calls[i](), cudaErrorStreamCaptureUnsupported) << "call " << i;
    cudaStreamCaptureStatus status{};
    must(cudaStreamIsCapturing(main_, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(enqueue(main_, "late", {}, [] {}), cudaErrorStreamCaptureInvalidated);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    must(cudaStreamIsCapturing(main_, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  }
}

TEST_F(DoubleGraph, OtherStreamsMayBeWaitedForWhileRecording) {
  begin();
  EXPECT_EQ(cudaStreamSynchronize(side_), cudaSuccess);
  end();
}

TEST_F(DoubleGraph, ABranchThatNobodyJoinsIsRefused) {
  begin();
  fork();
  must(enqueue(side_, "lost", {}, [] {}));
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaErrorStreamCaptureUnjoined);
}

TEST_F(DoubleGraph, WaitingForWorkThatIsNotRecordedIsRefused) {
  must(enqueue(side_, "before", {}, [] {}));
  must(cudaEventRecord(fork_, side_));
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(main_, fork_, 0), cudaErrorStreamCaptureIsolation);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(DoubleGraph, ARecordedEventCannotBeWaitedForByTheHost) {
  begin();
  must(cudaEventRecord(fork_, main_));
  EXPECT_EQ(cudaEventSynchronize(fork_), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaEventQuery(fork_), cudaErrorCapturedEvent);
  end();
}

TEST_F(DoubleGraph, NodesAreWhatWasQueued) {
  const DeviceArray<int> data({1, 0});
  begin();
  queue_add(main_, data.get() + 1, data.get(), 1);
  must(cudaMemsetAsync(data.get(), 0, 4, main_));
  fork();
  join();  // events are no nodes
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(main_, &graph));
  std::size_t count = 0;
  must(cudaGraphGetNodes(graph, nullptr, &count));
  ASSERT_EQ(count, 2U);
  cudaGraphNode_t nodes[2];
  must(cudaGraphGetNodes(graph, nodes, &count));
  cudaGraphNodeType type{};
  must(cudaGraphNodeGetType(nodes[1], &type));
  EXPECT_EQ(type, cudaGraphNodeTypeMemset);
  must(cudaGraphDestroy(graph));
}

}  // namespace
}  // namespace reprise::test::cuda
