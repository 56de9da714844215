// Kernels started as the backend starts them, on streams of the double.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

#include "double/control.h"
#include "platform/launch.h"

namespace reprise::test::cuda {
namespace emulated {

// y = x + by, for n elements from `first` on
__global__ void add_to(const float* x, float by, float* y, int first, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[first + i] = x[first + i] + by;
}

__global__ void overwrite(const float* x, int at) {
  const_cast<float*>(x)[at] = 7;
}

__global__ void leave_early() {
  if (threadIdx.x == 0) return;
  __syncthreads();
}

}  // namespace emulated

namespace {

using kernels::cuda::launch;
using kernels::cuda::reads;
using kernels::cuda::writes;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kCount = 100;

class LaunchTest : public testing::Test {
 protected:
  void SetUp() override {
    reset();
    set_policy(Policy::kStarve, 1);
    std::iota(values_.begin(), values_.end(), 0.0F);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&x_), 2 * kCount * sizeof(float)), cudaSuccess);
    y_ = x_ + kCount;
    ASSERT_EQ(
        cudaMemcpy(x_, values_.data(), values_.size() * sizeof(float), cudaMemcpyHostToDevice),
        cudaSuccess);
  }
  void TearDown() override {
    set_touch_guard(false);
    reset();  // a kernel that failed has broken the device
  }

  void add(int declared_reads, int declared_writes, int first = 0, int n = kCount) {
    launch("add_to", emulated::add_to, dim3(4), dim3(32), nullptr,
           {reads(x_, static_cast<std::size_t>(declared_reads)),
            writes(y_, static_cast<std::size_t>(declared_writes))},
           x_, 0.5, y_, first, n);
  }
  std::vector<float> results() {
    std::vector<float> y(kCount);
    EXPECT_EQ(cudaMemcpy(y.data(), y_, kCount * sizeof(float), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return y;
  }

  std::vector<float> values_ = std::vector<float>(2 * kCount);
  float* x_ = nullptr;
  float* y_ = nullptr;
};

TEST_F(LaunchTest, KernelsSeeTheBytesBehindDeviceAddresses) {
  for (const bool guarded : {false, true}) {
    set_touch_guard(guarded);
    add(kCount, kCount);
    const std::vector<float> y = results();
    for (int i = 0; i < kCount; ++i)
      EXPECT_EQ(y[static_cast<std::size_t>(i)], static_cast<float>(i) + 0.5F);
  }
}

TEST_F(LaunchTest, AGridWithoutBlocksStartsNothing) {
  clear_counts();
  launch("nothing", emulated::add_to, dim3(0), dim3(32), nullptr, {}, x_, 1.0F, y_, 0, kCount);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(counts().kernels, 0U);
}

TEST_F(LaunchTest, FaultsOfAKernelAreFaultsOfTheDouble) {
  const CollectedFaults faults;
  launch("leave_early", emulated::leave_early, dim3(1), dim3(32), nullptr, {});
  (void)cudaDeviceSynchronize();
  EXPECT_THAT(faults.all(), ElementsAre(HasSubstr("divergent barrier")));
}

TEST_F(LaunchTest, WritesThatAreNotDeclaredAreNamed) {
  set_touch_guard(true);
  const CollectedFaults faults;
  add(kCount, kCount - 1);  // says that it leaves the last element alone
  (void)cudaDeviceSynchronize();
  // Elements are floats: the last of 200 starts at byte 796.
  EXPECT_THAT(faults.all(), ElementsAre(AllOf(HasSubstr("kernel add_to: wrote bytes [796, 797)"),
                                              HasSubstr("did not declare as written"))));
}

TEST_F(LaunchTest, WritesToWhatIsOnlyReadAreNamed) {
  set_touch_guard(true);
  const CollectedFaults faults;
  launch("overwrite", emulated::overwrite, dim3(1), dim3(1), nullptr, {reads(x_, kCount)}, x_, 3);
  (void)cudaDeviceSynchronize();
  EXPECT_THAT(faults.all(), ElementsAre(HasSubstr("but as read")));
}

TEST_F(LaunchTest, ReadsThatAreNotDeclaredSpoilTheResult) {
  set_touch_guard(true);
  add(kCount - 1, kCount);
  const std::vector<float> y = results();
  EXPECT_EQ(y[kCount - 2], kCount - 2 + 0.5F);
  EXPECT_NE(y[kCount - 1], kCount - 1 + 0.5F);
}

}  // namespace
}  // namespace reprise::test::cuda
