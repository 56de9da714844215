// The machine that the double pretends to be: no device, several, calls that fail, and counts.

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <gtest/gtest.h>
#include <thread>

#include "tests/cuda/double/control.h"
#include "tests/cuda/double/device_array.h"

namespace reprise::test::cuda {
namespace {

class DoubleMachine : public ::testing::Test {
 protected:
  void SetUp() override { reset(); }
  void TearDown() override { reset(); }
};

TEST_F(DoubleMachine, WithoutADriverTheCountOfDevicesIsLeftAlone) {
  set_machine({1, 1 << 30, cudaErrorInsufficientDriver});
  int count = 77;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  EXPECT_EQ(count, 77);
  int version = 77;
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 0);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorInsufficientDriver);
  cublasHandle_t blas = nullptr;
  EXPECT_EQ(cublasCreate(&blas), CUBLAS_STATUS_NOT_INITIALIZED);
  cudnnHandle_t dnn = nullptr;
  EXPECT_EQ(cudnnCreate(&dnn), CUDNN_STATUS_NOT_INITIALIZED);
}

TEST_F(DoubleMachine, EachThreadHasADeviceOfItsOwn) {
  set_machine({2, std::size_t{1} << 30, 0});
  int count = 0;
  must(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  std::size_t before = 0, total = 0;
  must(cudaMemGetInfo(&before, &total));
  std::thread other([] {
    must(cudaSetDevice(1));
    const DeviceArray<char> data(1000);
    cudaPointerAttributes attributes;
    must(cudaPointerGetAttributes(&attributes, data.get()));
    EXPECT_EQ(attributes.device, 1);
  });
  other.join();
  int device = 77;
  must(cudaGetDevice(&device));
  EXPECT_EQ(device, 0);
  std::size_t after = 0;
  must(cudaMemGetInfo(&after, &total));
  EXPECT_EQ(after, before) << "memory of device 1 is not that of device 0";
}

TEST_F(DoubleMachine, TheNthCallFails) {
  fail_call("cudaMalloc", 2, cudaErrorMemoryAllocation);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
}

TEST_F(DoubleMachine, AKernelThatThrowsBreaksItsDevice) {
  const CollectedFaults faults;
  (void)enqueue(nullptr, "bad", {}, [] { throw std::runtime_error("out of line"); });
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  ASSERT_EQ(faults.all().size(), 1U);
  EXPECT_EQ(faults.all()[0], "kernel 'bad' on the default stream: out of line");
}

TEST_F(DoubleMachine, CallsKernelsAndBytesAreCounted) {
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const DeviceArray<char> data(100);
  char* pinned = nullptr;
  must(cudaMallocHost(&pinned, 100));
  clear_counts();
  must(cudaMemcpyAsync(data.get(), pinned, 100, cudaMemcpyHostToDevice, stream));
  must(enqueue(stream, "one", {}, [] {}));
  must(enqueue(stream, "two", {}, [] {}));
  must(cudaMemcpyAsync(pinned, data.get(), 40, cudaMemcpyDeviceToHost, stream));
  must(cudaStreamSynchronize(stream));
  const Counts found = counts();
  EXPECT_EQ(found.calls.at("cudaMemcpyAsync"), 2U);
  EXPECT_EQ(found.calls.at("cudaLaunchKernel"), 2U);
  EXPECT_EQ(found.api_calls, 5U);
  EXPECT_EQ(found.kernels, 2U);
  EXPECT_EQ(found.host_to_device_bytes, 100U);
  EXPECT_EQ(found.device_to_host_bytes, 40U);
  EXPECT_EQ(found.allocations, 1U);
  EXPECT_EQ(found.allocated_bytes, 100U);
}

TEST_F(DoubleMachine, KernelsOfAGraphAreCountedAtEveryLaunchAndCallsAreNot) {
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 5; ++i) must(enqueue(stream, "one", {}, [] {}));
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  must(cudaGraphInstantiate(&exec, graph, 0));
  clear_counts();
  must(cudaGraphLaunch(exec, stream));
  must(cudaGraphLaunch(exec, stream));
  must(cudaStreamSynchronize(stream));
  EXPECT_EQ(counts().kernels, 10U);
  EXPECT_EQ(counts().graph_launches, 2U);
  EXPECT_EQ(counts().api_calls, 3U);
  must(cudaGraphDestroy(graph));
}

TEST_F(DoubleMachine, HandlesAreDeadAfterTheirEnd) {
  cudaStream_t stream = nullptr;
  must(cudaStreamCreate(&stream));
  must(cudaStreamDestroy(stream));
  const CollectedFaults faults;
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(enqueue(stream, "late", {}, [] {}), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(faults.all().size(), 2U);
}

using DoubleMachineDeathTest = DoubleMachine;
TEST_F(DoubleMachineDeathTest, AHostFunctionMustNotCallTheApi) {
  set_policy(Policy::kStarve);
  must(cudaLaunchHostFunc(
      nullptr, [](void*) { (void)cudaDeviceSynchronize(); }, nullptr));
  EXPECT_DEATH((void)cudaDeviceSynchronize(),
               "cudaDeviceSynchronize is called from a host function or a kernel");
}

}  // namespace
}  // namespace reprise::test::cuda
