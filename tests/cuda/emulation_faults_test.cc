// Kernels that break a rule of CUDA: each must be caught, or the emulation has gone blind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

#include "host/device_language.h"

namespace reprise::test::cuda {
namespace emulated {

// The sum of a block, with both barriers that it needs, or without one of them.
__device__ unsigned sum_with(bool barrier, bool trailing_barrier, unsigned value) {
  __shared__ unsigned partial[32];
  for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffffU, value, delta);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  if (barrier) __syncthreads();
  unsigned sum = 0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += partial[w];
  if (trailing_barrier) __syncthreads();
  return sum;
}
__global__ void sum_and_double(bool barrier, bool trailing_barrier, int* out) {
  const unsigned sum = sum_with(barrier, trailing_barrier, 1);
  out[threadIdx.x] = static_cast<int>(sum + sum_with(barrier, trailing_barrier, 2));
}

// Lanes of a warp hand a value on through shared memory.
__global__ void pass_on(bool barrier, int* out) {
  __shared__ int values[32];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (barrier) __syncwarp();
  out[threadIdx.x] = values[31 - threadIdx.x];
}

__global__ void leave_early(unsigned n) {
  if (threadIdx.x >= n) return;
  __syncthreads();
}

__global__ void two_barriers() {
  if (threadIdx.x < 32) {
    __syncthreads();
    return;
  }
  __syncthreads();
}

__global__ void barrier_or_warp() {
  if (threadIdx.x == 5)
    __syncthreads();
  else
    __syncwarp();
  __syncthreads();
}

__global__ void leave_before_shuffle(unsigned n, int* out) {
  if (threadIdx.x >= n) return;
  out[threadIdx.x] = __shfl_xor_sync(0xffffffffU, 1, 1);
}
__global__ void shuffle_with(unsigned mask, int source, int* out) {
  out[threadIdx.x] = __shfl_sync(mask, 1, source);
}

__global__ void much_shared(float* out) {
  __shared__ double rows[48 * 128 + 1];
  for (unsigned i = threadIdx.x; i < 48 * 128 + 1; i += blockDim.x) rows[i] = i;
  __syncthreads();
  out[threadIdx.x] = static_cast<float>(rows[threadIdx.x]);
}

__global__ void nothing() {}

__global__ void off_by_one(int n, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (static_cast<int>(i) <= n) out[i] = 1;
}

}  // namespace emulated

namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr ThreadOrder kOrders[] = {ThreadOrder::kForward, ThreadOrder::kReverse,
                                   ThreadOrder::kRandom};

// Under how many of the three orders the kernel's results differ from `expected`.
template <class F>
int orders_that_show(const std::vector<int>& expected, F kernel) {
  int shown = 0;
  for (const ThreadOrder order : kOrders) {
    set_thread_order(order, 3);
    std::vector<int> out(expected.size());
    run_grid("planted", dim3(1), dim3(static_cast<unsigned>(out.size())),
             [&] { kernel(out.data()); });
    shown += out != expected ? 1 : 0;
  }
  set_thread_order(ThreadOrder::kForward);
  return shown;
}

// What the emulation says of the kernel, in whatever order its threads run.
std::string fault_of(dim3 grid, dim3 block, const std::function<void()>& kernel) {
  std::string said;
  for (const ThreadOrder order : kOrders) {
    set_thread_order(order, 3);
    try {
      run_grid("planted", grid, block, kernel);
      said = std::string("nothing in order ") + to_string(order);
      break;
    } catch (const KernelFault& fault) {
      said = fault.what();
    }
  }
  set_thread_order(ThreadOrder::kForward);
  return said;
}

TEST(PlantedInAKernelTest, MissingBarrierShows) {
  const std::vector<int> expected(128, 128 + 256);
  EXPECT_EQ(orders_that_show(expected, [](int* out) { emulated::sum_and_double(true, true, out); }),
            0);
  EXPECT_EQ(
      orders_that_show(expected, [](int* out) { emulated::sum_and_double(false, true, out); }), 3);
}

TEST(PlantedInAKernelTest, MissingTrailingBarrierShows) {
  const std::vector<int> expected(128, 128 + 256);
  EXPECT_EQ(
      orders_that_show(expected, [](int* out) { emulated::sum_and_double(true, false, out); }), 3);
}

TEST(PlantedInAKernelTest, MissingWarpBarrierShows) {
  std::vector<int> expected(32);
  std::iota(expected.rbegin(), expected.rend(), 0);
  EXPECT_EQ(orders_that_show(expected, [](int* out) { emulated::pass_on(true, out); }), 0);
  EXPECT_EQ(orders_that_show(expected, [](int* out) { emulated::pass_on(false, out); }), 3);
}

TEST(PlantedInAKernelTest, ThreadsThatEndBeforeABarrierAreNamed) {
  EXPECT_THAT(fault_of(dim3(2), dim3(64), [] { emulated::leave_early(40); }),
              AllOf(HasSubstr("kernel planted, block ("), HasSubstr("divergent barrier: thread 0"),
                    HasSubstr("thread 40 has ended"), HasSubstr("emulation_faults_test.cc:")));
  EXPECT_EQ(fault_of(dim3(1), dim3(64), [] { emulated::leave_early(64); }),
            "nothing in order forward");
}

TEST(PlantedInAKernelTest, ThreadsAtAnotherBarrierAreNamed) {
  EXPECT_THAT(fault_of(dim3(1), dim3(64), [] { emulated::two_barriers(); }),
              AllOf(HasSubstr("divergent barrier: thread 0"), HasSubstr("and thread 32 waits at")));
}

TEST(PlantedInAKernelTest, ALaneAtABlockBarrierIsMissedByItsWarp) {
  EXPECT_THAT(fault_of(dim3(1), dim3(32), [] { emulated::barrier_or_warp(); }),
              AllOf(HasSubstr("a lane of the mask is missing: thread 0 waits in __syncwarp"),
                    HasSubstr("thread 5 waits at the barrier")));
}

TEST(PlantedInAKernelTest, LanesMissingFromAShuffleAreNamed) {
  std::vector<int> out(32);
  EXPECT_THAT(fault_of(dim3(1), dim3(32), [&] { emulated::leave_before_shuffle(30, out.data()); }),
              AllOf(HasSubstr("a lane of the mask is missing"), HasSubstr("thread 30 has ended")));
}

TEST(PlantedInAKernelTest, MasksMustNameTheCallerAndWhatItReads) {
  std::vector<int> out(32);
  EXPECT_THAT(
      fault_of(dim3(1), dim3(32), [&] { emulated::shuffle_with(0x7fffffff, 0, out.data()); }),
      HasSubstr("thread 31 calls __shfl_sync"));
  EXPECT_THAT(
      fault_of(dim3(1), dim3(20), [&] { emulated::shuffle_with(0xffffffff, 0, out.data()); }),
      HasSubstr("but its warp has only 20 lanes"));
  EXPECT_THAT(
      fault_of(dim3(1), dim3(16), [&] { emulated::shuffle_with(0x0000ffff, 16, out.data()); }),
      HasSubstr("reads lane 16, which is not in it"));
}

TEST(PlantedInAKernelTest, TooLargeBlocksGridsAndSharedMemoryAreRefused) {
  const auto nothing = [] { emulated::nothing(); };
  EXPECT_THAT(fault_of(dim3(1), dim3(1025), nothing), HasSubstr("a block of (1025, 1, 1) threads"));
  EXPECT_THAT(fault_of(dim3(1), dim3(1, 1, 65), nothing), HasSubstr("at most 64 along z"));
  EXPECT_THAT(fault_of(dim3(1), dim3(0), nothing), HasSubstr("a block of (0, 1, 1) threads"));
  EXPECT_THAT(fault_of(dim3(1, 65536), dim3(1), nothing), HasSubstr("a grid of (1, 65536, 1)"));
  EXPECT_EQ(fault_of(dim3(1, 2, 2), dim3(32, 32), nothing), "nothing in order forward")
      << "the largest block there is";
  std::vector<float> out(32);
  EXPECT_THAT(fault_of(dim3(1), dim3(32), [&] { emulated::much_shared(out.data()); }),
              HasSubstr("49160 bytes of shared memory; a block has 49152"));
}

TEST(PlantedInAKernelTest, TheNextKernelRunsAfterAFault) {
  (void)fault_of(dim3(1), dim3(1024), [] { emulated::leave_early(1000); });
  EXPECT_EQ(orders_that_show(std::vector<int>(1024, 3 * 1024),
                             [](int* out) { emulated::sum_and_double(true, true, out); }),
            0);
}

#if defined(__SANITIZE_ADDRESS__)
TEST(PlantedInAKernelTest, AddressSanitizerSeesAWriteOutOfBounds) {
  const auto out = std::make_unique<float[]>(100);
  EXPECT_DEATH(
      run_grid("planted", dim3(4), dim3(32), [&] { emulated::off_by_one(100, out.get()); }),
      "heap-buffer-overflow");
}
#endif

}  // namespace
}  // namespace reprise::test::cuda
