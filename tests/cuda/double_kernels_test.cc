// The same planted bugs with a kernel that launch() starts.

#include <gtest/gtest.h>

#include "platform/launch.h"
#include "tests/cuda/double/control.h"
#include "tests/cuda/double/device_array.h"

namespace reprise::test::cuda {
namespace {

using kernels::cuda::launch;
using kernels::cuda::reads;
using kernels::cuda::writes;

__global__ void double_values(const float* x, float* y, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) y[i] = 2 * x[i];
}

class DoubleKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    reset();
    set_policy(Policy::kStarve);
    must(cudaStreamCreateWithFlags(&first_, cudaStreamNonBlocking));
    must(cudaStreamCreateWithFlags(&second_, cudaStreamNonBlocking));
  }
  static void queue(cudaStream_t stream, const float* x, float* y, int count) {
    launch("double_values", double_values, dim3(2), dim3(32), stream,
           {reads(x, static_cast<std::size_t>(count)), writes(y, static_cast<std::size_t>(count))},
           x, y, count);
  }
  cudaStream_t first_{}, second_{};
};

TEST_F(DoubleKernels, AKernelRunsWhenItsStreamIsWaitedFor) {
  const DeviceArray<float> x({1, 2, 3}), y({0, 0, 0});
  queue(first_, x.get(), y.get(), 3);
  EXPECT_EQ(counts().kernels, 0U);
  must(cudaStreamSynchronize(first_));
  EXPECT_EQ(counts().kernels, 1U);
  EXPECT_EQ(y.values(), (std::vector<float>{2, 4, 6}));
}

TEST_F(DoubleKernels, AMissingWaitBetweenTwoKernelsIsReported) {
  const DeviceArray<float> x({1, 2, 3}), y({0, 0, 0}), z({0, 0, 0});
  queue(first_, x.get(), y.get(), 3);
  const CollectedFaults faults;
  queue(second_, y.get(), z.get(), 3);
  ASSERT_EQ(faults.all().size(), 1U);
  EXPECT_EQ(faults.all()[0],
            "unordered: kernel 'double_values' on stream 1 writes and kernel 'double_values' on "
            "stream 2 reads bytes [0, 12) of allocation 2 (12 bytes); neither waits for the other");
  must(cudaDeviceSynchronize());
}

TEST_F(DoubleKernels, AKernelWhoseMemoryIsFreedTooSoonIsReported) {
  const DeviceArray<float> x({1, 2, 3}), y({0, 0, 0});
  queue(first_, x.get(), y.get(), 3);
  const CollectedFaults faults;
  must(cudaFree(y.get()));
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaErrorIllegalAddress);
  ASSERT_EQ(faults.all().size(), 2U);
  EXPECT_NE(faults.all()[0].find("the host (cudaFree) writes bytes [0, 12) of allocation 2"),
            std::string::npos);
  EXPECT_NE(faults.all()[1].find("kernel 'double_values' on stream 1: there is no memory at bytes "
                                 "[0, 12) of allocation 2 (12 bytes, freed)"),
            std::string::npos);
}

TEST_F(DoubleKernels, ARangeOverTheEndOfAnAllocationIsReported) {
  const DeviceArray<float> x({1, 2, 3}), y({0, 0, 0});
  const CollectedFaults faults;
  queue(first_, x.get(), y.get(), 4);
  ASSERT_EQ(faults.all().size(), 2U);  // both arrays
  EXPECT_NE(faults.all()[0].find("bytes [0, 16) of allocation 1 (12 bytes)"), std::string::npos);
}

}  // namespace
}  // namespace reprise::test::cuda
