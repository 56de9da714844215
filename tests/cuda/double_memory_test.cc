// Planted bugs with memory: each is found.

#include <cstring>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/cuda/double/control.h"
#include "tests/cuda/double/device_array.h"

namespace reprise::test::cuda {
namespace {

class DoubleMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    reset();
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  // The only fault so far holds this text.
  static void expect_one(const CollectedFaults& faults, const std::string& text) {
    ASSERT_EQ(faults.all().size(), 1U);
    EXPECT_NE(faults.all()[0].find(text), std::string::npos) << faults.all()[0];
  }
  cudaStream_t stream_ = nullptr;
};
using DoubleMemoryDeathTest = DoubleMemory;

TEST_F(DoubleMemoryDeathTest, AHostThatReadsDeviceMemoryIsToldSo) {
  const DeviceArray<int> data(4);
  EXPECT_DEATH(std::printf("%d", *static_cast<volatile int*>(data.get() + 2)),
               "the host dereferenced device memory: bytes \\[8, 9\\) of allocation 1");
}

TEST_F(DoubleMemoryDeathTest, AHostThatWritesDeviceMemoryIsToldSo) {
  const DeviceArray<int> data(4);
  EXPECT_DEATH(*static_cast<volatile int*>(data.get()) = 1,
               "the host dereferenced device memory: bytes \\[0, 1\\) of allocation 1");
}

TEST_F(DoubleMemoryDeathTest, AFaultThatNobodyCollectsEndsTheProcess) {
  const DeviceArray<int> data(4);
  must(enqueue(stream_, "slow", {data.written()}, [] {}));
  EXPECT_DEATH(cudaFree(data.get()), "unordered: kernel 'slow' on stream 1 writes");
}

TEST_F(DoubleMemory, NewMemoryIsNotZero) {
  for (const unsigned char byte : DeviceArray<unsigned char>(5000).values()) EXPECT_EQ(byte, 0xA5);
  unsigned char* pinned = nullptr;
  must(cudaMallocHost(&pinned, 100));
  EXPECT_EQ(pinned[99], 0xA5);
}

TEST_F(DoubleMemory, FreedMemoryIsNotThere) {
  set_policy(Policy::kStarve);
  const DeviceArray<int> data(4);
  must(cudaFree(data.get()));
  CollectedFaults faults;
  EXPECT_EQ(enqueue(stream_, "late", {data.read()}, [] {}), cudaSuccess);
  expect_one(faults,
             "kernel 'late' on stream 1: there is no memory at bytes [0, 16) of allocation "
             "1 (16 bytes, freed)");
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorIllegalAddress) << "an error that stays";
}

TEST_F(DoubleMemory, FreeingWhatAnOperationMayStillUseIsReported) {
  set_policy(Policy::kStarve);
  const DeviceArray<int> data(4);
  must(enqueue(stream_, "slow", {data.read()}, [] {}));
  CollectedFaults faults;
  cudaFree(data.get());
  expect_one(faults, "kernel 'slow' on stream 1 reads and the host (cudaFree) writes");
}

TEST_F(DoubleMemory, NothingIsFreedTwice) {
  const DeviceArray<int> data(4);
  must(cudaFree(data.get()));
  CollectedFaults faults;
  EXPECT_EQ(cudaFree(data.get()), cudaErrorInvalidValue);
  expect_one(faults, "cudaFree of bytes [0, 1) of allocation 1 (16 bytes, freed)");
}

TEST_F(DoubleMemory, BytesBehindTheEndAreNoOnes) {
  set_policy(Policy::kStarve);
  const DeviceArray<int> data(4);
  CollectedFaults faults;
  EXPECT_EQ(cudaMemsetAsync(data.get(), 0, 17, stream_), cudaSuccess);
  expect_one(faults, "bytes [0, 17) of allocation 1 (16 bytes)");
}

TEST_F(DoubleMemory, AnAddressOfNoAllocationHasNoStorage) {
  const DeviceArray<int> data(4);
  EXPECT_NO_THROW((void)storage(data.get() + 3, 4));
  EXPECT_THROW((void)storage(data.get() + 3, 5), BadAddress);
  EXPECT_THROW((void)storage(data.get() + 4), BadAddress);
  int host = 0;
  EXPECT_THROW((void)storage(&host), BadAddress);
}

#if !defined(__SANITIZE_ADDRESS__)
TEST_F(DoubleMemory, AKernelThatWritesBehindTheEndIsFoundWhenItIsFreed) {
  const DeviceArray<int> data(4);
  must(enqueue(stream_, "wild", {data.written()}, [&] { translated(data.get())[4] = 1; }));
  must(cudaDeviceSynchronize());
  CollectedFaults faults;
  must(cudaFree(data.get()));
  expect_one(faults, "bytes behind the end of allocation 1 (16 bytes) were written");
}
#endif

TEST_F(DoubleMemory, ReadingBackWithoutWaitingIsReported) {
  set_policy(Policy::kStarve);
  const DeviceArray<int> data(std::vector<int>{1});
  must(enqueue(stream_, "set", {data.written()}, [&] { translated(data.get())[0] = 2; }));
  int host = 0;
  CollectedFaults faults;
  // The default stream does not wait for a stream that is not blocking.
  must(cudaMemcpy(&host, data.get(), sizeof host, cudaMemcpyDeviceToHost));
  EXPECT_EQ(host, 1);
  expect_one(faults,
             "kernel 'set' on stream 1 writes and copy 'cudaMemcpy' on the default stream "
             "reads bytes [0, 4) of allocation 1");
}

TEST_F(DoubleMemory, PinnedMemoryWrittenTooSoonIsCopiedAsItIsThen) {
  set_policy(Policy::kStarve);
  const DeviceArray<int> data(1);
  int* pinned = nullptr;
  must(cudaMallocHost(&pinned, sizeof *pinned));
  *pinned = 1;
  must(cudaMemcpyAsync(data.get(), pinned, sizeof *pinned, cudaMemcpyHostToDevice, stream_));
  CollectedFaults faults;
  host_access(pinned, sizeof *pinned, true);
  *pinned = 2;
  expect_one(faults,
             "copy 'cudaMemcpyAsync' on stream 1 reads and the host (marked access) writes "
             "bytes [0, 4) of pinned allocation 2");
  faults.clear();
  EXPECT_EQ(data.values(), (std::vector<int>{2}));
  expect_one(faults,
             "copy 'cudaMemcpyAsync' on stream 1 finds bytes [0, 4) of pinned allocation 2 "
             "(4 bytes) changed since it was queued");
}

TEST_F(DoubleMemory, PinnedMemoryMayBeFilledByAnOperationBefore) {
  set_policy(Policy::kStarve);
  const DeviceArray<int> from(std::vector<int>{7}), to(std::vector<int>{0});
  int* pinned = nullptr;
  must(cudaMallocHost(&pinned, sizeof *pinned));
  must(cudaMemcpyAsync(pinned, from.get(), sizeof *pinned, cudaMemcpyDeviceToHost, stream_));
  must(cudaMemcpyAsync(to.get(), pinned, sizeof *pinned, cudaMemcpyHostToDevice, stream_));
  EXPECT_EQ(to.values(), (std::vector<int>{7}));
}

TEST_F(DoubleMemory, PinnedMemoryMayBeWrittenAfterAWait) {
  const DeviceArray<int> data(1);
  int* pinned = nullptr;
  must(cudaMallocHost(&pinned, sizeof *pinned));
  must(cudaMemcpyAsync(data.get(), pinned, sizeof *pinned, cudaMemcpyHostToDevice, stream_));
  must(cudaStreamSynchronize(stream_));
  host_access(pinned, sizeof *pinned, true);
}

TEST_F(DoubleMemory, PageableMemoryIsReadAtTheCallAndWrittenBeforeItReturns) {
  set_policy(Policy::kStarve);
  const DeviceArray<int> data(1);
  int host = 1;
  must(cudaMemcpyAsync(data.get(), &host, sizeof host, cudaMemcpyHostToDevice, stream_));
  host = 2;
  int back = 0;
  must(cudaMemcpyAsync(&back, data.get(), sizeof back, cudaMemcpyDeviceToHost, stream_));
  EXPECT_EQ(back, 1);
}

TEST_F(DoubleMemory, ADirectionThatIsNotThatOfTheAddressesIsReported) {
  const DeviceArray<int> data(1);
  int host = 1;
  CollectedFaults faults;
  EXPECT_EQ(cudaMemcpyAsync(data.get(), &host, 4, cudaMemcpyDeviceToHost, stream_),
            cudaErrorInvalidValue);
  expect_one(faults, "cudaMemcpyAsync: the direction is not that of the addresses");
}

TEST_F(DoubleMemory, ADeviceIsFullAtItsSizeAndTheContextTakesPartOfIt) {
  set_machine({1, std::size_t{1} << 30, 0});
  std::size_t available = 0, total = 0;
  must(cudaMemGetInfo(&available, &total));
  EXPECT_EQ(total, std::size_t{1} << 30);
  EXPECT_LT(available, total);
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, available + 1), cudaErrorMemoryAllocation);
  const DeviceArray<char> some(1000);
  std::size_t left = 0;
  must(cudaMemGetInfo(&left, &total));
  EXPECT_EQ(left, available - 1000);
  must(cudaFree(some.get()));
}

TEST_F(DoubleMemory, AddressesTellWhereTheyAre) {
  const DeviceArray<int> data(1);
  int* pinned = nullptr;
  must(cudaMallocHost(&pinned, 4));
  int host = 0;
  const auto type = [](const void* address) {
    cudaPointerAttributes attributes;
    must(cudaPointerGetAttributes(&attributes, address));
    return attributes.type;
  };
  EXPECT_EQ(type(data.get()), cudaMemoryTypeDevice);
  EXPECT_EQ(type(pinned), cudaMemoryTypeHost);
  EXPECT_EQ(type(&host), cudaMemoryTypeUnregistered);
}

}  // namespace
}  // namespace reprise::test::cuda
