// Kernels that follow the rules, on the host: they compute the right thing in whatever order their
// threads run.

#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "host/device_language.h"

namespace reprise::test::cuda {
namespace emulated {

__global__ void write_indices(int* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] += static_cast<int>(thread);
}

// Block b sums x[b * n, (b + 1) * n) by a tree in shared memory.
__global__ void tree_sums(const int* x, int n, int* sums) {
  __shared__ int partial[256];
  const int t = static_cast<int>(threadIdx.x);
  int sum = 0;
  for (int i = t; i < n; i += static_cast<int>(blockDim.x))
    sum += x[static_cast<int>(blockIdx.x) * n + i];
  partial[t] = sum;
  for (int half = static_cast<int>(blockDim.x) / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) partial[t] += partial[t + half];
  }
  if (t == 0) sums[blockIdx.x] = partial[0];
}

__device__ int sum_of_warp(int value) {
  for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffffU, value, delta);
  return value;
}

// Two sums one after the other through the same shared array: a first barrier lets all partial sums
// in, a second one keeps the next sum out until all have read.
__device__ int sum_of_block(int value) {
  __shared__ int partial[32];
  const unsigned warp = threadIdx.x / 32;
  const int warp_sum = sum_of_warp(value);
  if (threadIdx.x % 32 == 0) partial[warp] = warp_sum;
  __syncthreads();
  int sum = 0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += partial[w];
  __syncthreads();
  return sum;
}
template <class T>
__global__ void two_sums(const T* x, T* sums) {
  const T first = sum_of_block(x[threadIdx.x]);
  const T second = sum_of_block(x[threadIdx.x] * first);
  if (threadIdx.x == 0) {
    sums[0] = first;
    sums[1] = second;
  }
}

// What each kind of exchange gives lane by lane.
__global__ void exchanges(int* from_three, int* down, int* up, int* crossed, int* of_eight) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const unsigned all = 0xffffffffU;
  from_three[lane] = __shfl_sync(all, lane * 10, 3);
  down[lane] = __shfl_down_sync(all, lane, 4);
  up[lane] = __shfl_up_sync(all, lane, 4);
  crossed[lane] = __shfl_xor_sync(all, lane, 1);
  of_eight[lane] = __shfl_down_sync(all, lane, 4, 8);
}

// Lanes of a warp take two paths, each with a mask of its own.
__global__ void two_paths(double* out) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned low = 0x0000ffffU, high = 0xffff0000U;
  if (lane < 16)
    out[lane] = __shfl_sync(low, static_cast<double>(lane), 0);
  else
    out[lane] = __shfl_sync(high, static_cast<double>(lane), 16);
  __syncwarp();
}

__global__ void votes(unsigned* ballot, int* any, int* all) {
  const int lane = static_cast<int>(threadIdx.x);
  ballot[lane] = __ballot_sync(0xffffffffU, lane % 4 == 0);
  any[lane] = __any_sync(0xffffffffU, lane == 7);
  all[lane] = __all_sync(0xffffffffU, lane < 31);
}

__global__ void count(int n, int* counter, float* sum) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (static_cast<int>(i) >= n) return;
  atomicAdd(counter, 1);
  atomicAdd(sum, 0.5F);
}

// Keeps what shared memory held before anyone wrote to it, and writes. What is stored is no
// constant: compilers make less of such an array.
template <class T>
__device__ T exchanged(T value) {
  __shared__ T word[64];
  const T before = word[17];
  word[17] = value;
  return before;
}
__global__ void see_shared(unsigned* seen, unsigned* seen_by_function) {
  __shared__ unsigned word[64];
  seen[blockIdx.x] = word[17];
  word[17] = blockIdx.x;
  seen_by_function[blockIdx.x] = exchanged(blockIdx.x);
}

__global__ void relu(const float* x, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}

}  // namespace emulated

namespace {

class EmulationTest : public testing::TestWithParam<ThreadOrder> {
 protected:
  void SetUp() override { set_thread_order(GetParam(), 7); }
  void TearDown() override { set_thread_order(ThreadOrder::kForward); }
};
INSTANTIATE_TEST_SUITE_P(Orders, EmulationTest,
                         testing::Values(ThreadOrder::kForward, ThreadOrder::kReverse,
                                         ThreadOrder::kRandom),
                         [](const auto& one) { return to_string(one.param); });

TEST_P(EmulationTest, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int> out(2 * 3 * 2 * 30);
  run_grid("write_indices", dim3(2, 3, 2), dim3(5, 3, 2),
           [&] { emulated::write_indices(out.data()); });
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], static_cast<int>(i % 30)) << i;
}

TEST_P(EmulationTest, ATreeInSharedMemorySums) {
  std::vector<int> x(3 * 1000), sums(3);
  std::iota(x.begin(), x.end(), 0);
  run_grid("tree_sums", dim3(3), dim3(256),
           [&] { emulated::tree_sums(x.data(), 1000, sums.data()); });
  // 1000 numbers from 1000 b on: 1000 * 1000 b + 999 * 500
  EXPECT_EQ(sums, (std::vector{499'500, 1'499'500, 2'499'500}));
}

TEST_P(EmulationTest, SharedMemoryIsUsedAgainBehindABarrier) {
  std::vector<int> x(256, 1), sums(2);
  run_grid("two_sums", dim3(1), dim3(256), [&] { emulated::two_sums<int>(x.data(), sums.data()); });
  EXPECT_EQ(sums, (std::vector{256, 65'536}));
}

TEST_P(EmulationTest, LanesExchangeValues) {
  std::vector<int> three(32), down(32), up(32), crossed(32), eight(32);
  run_grid("exchanges", dim3(1), dim3(32), [&] {
    emulated::exchanges(three.data(), down.data(), up.data(), crossed.data(), eight.data());
  });
  for (int lane = 0; lane < 32; ++lane) {
    const auto at = static_cast<std::size_t>(lane);
    EXPECT_EQ(three[at], 30);
    EXPECT_EQ(down[at], lane < 28 ? lane + 4 : lane);
    EXPECT_EQ(up[at], lane >= 4 ? lane - 4 : lane);
    EXPECT_EQ(crossed[at], lane ^ 1);
    EXPECT_EQ(eight[at], lane % 8 < 4 ? lane + 4 : lane);
  }
}

TEST_P(EmulationTest, LanesOfTwoPathsMeetInTheirOwnMasks) {
  std::vector<double> out(32);
  run_grid("two_paths", dim3(1), dim3(32), [&] { emulated::two_paths(out.data()); });
  for (std::size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane < 16 ? 0 : 16);
}

TEST_P(EmulationTest, LanesVote) {
  std::vector<unsigned> ballot(32);
  std::vector<int> any(32), all(32);
  run_grid("votes", dim3(1), dim3(32),
           [&] { emulated::votes(ballot.data(), any.data(), all.data()); });
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(ballot[lane], 0x11111111U);
    EXPECT_EQ(any[lane], 1);
    EXPECT_EQ(all[lane], 0);
  }
}

TEST_P(EmulationTest, AtomicsAddUp) {
  int counter = 0;
  float sum = 0;
  run_grid("count", dim3(5), dim3(96), [&] { emulated::count(400, &counter, &sum); });
  EXPECT_EQ(counter, 400);
  EXPECT_EQ(sum, 200);
}

TEST_P(EmulationTest, SharedMemoryIsPoisonedInEveryBlock) {
  std::vector<unsigned> seen(4), by_function(4);
  run_grid("see_shared", dim3(4), dim3(1),
           [&] { emulated::see_shared(seen.data(), by_function.data()); });
  EXPECT_EQ(seen, std::vector<unsigned>(4, 0xa5a5a5a5U));
  EXPECT_EQ(by_function, std::vector<unsigned>(4, 0xa5a5a5a5U));
}

TEST_P(EmulationTest, AMillionElementsArePointwiseFast) {
  std::vector<float> x(1'000'000), y(x.size());
  std::iota(x.begin(), x.end(), -500'000.0F);
  const auto begin = clock();
  run_grid("relu", dim3(3907), dim3(256),
           [&] { emulated::relu(x.data(), y.data(), static_cast<int>(x.size())); });
  const double ms = 1e3 * static_cast<double>(clock() - begin) / CLOCKS_PER_SEC;
  RecordProperty("cpu_ms", std::to_string(ms));
  EXPECT_EQ(std::accumulate(y.begin(), y.end(), 0.0), 499'999.0 * 500'000 / 2);
  EXPECT_LT(ms, 1000) << "no fiber may be switched for threads that never block";
}

}  // namespace
}  // namespace reprise::test::cuda
