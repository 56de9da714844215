#pragma once

// Runs the blocks of a kernel on the host, one after the other. The threads of a block run on
// fibers, one at a time: warp by warp, each warp as far as it can go, and within a warp lane by
// lane. So whatever a missing barrier leaves unordered does happen in the wrong order under one of
// the orders below.
//
// A kernel that breaks a rule of CUDA ends in a KernelFault that names the kernel, the rule and the
// threads: barriers that not all threads of a block reach, warp functions that not all lanes of
// their mask reach, too large blocks, grids or shared memory.

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <functional>
#include <stdexcept>

namespace reprise::test::cuda {

class KernelFault : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// In which order blocks, warps and lanes run, in this thread of the host.
enum class ThreadOrder { kForward, kReverse, kRandom };
[[nodiscard]] const char* to_string(ThreadOrder order);
void set_thread_order(ThreadOrder order, std::uint64_t seed = 0);

// Runs `thread` for every thread of the grid. Shared memory holds 0xA5 when a block starts.
void run_grid(const char* kernel, dim3 grid, dim3 block, const std::function<void()>& thread);

inline constexpr std::size_t kThreadsOfBlock = 1024;
inline constexpr std::size_t kSharedBytes = 48 * 1024;

// -- for host/device_language.h: what the running thread of a kernel calls

// A place in the source; barriers and warp functions meet only at the same one.
struct Site {
  const char* file;
  int line;
  friend bool operator==(const Site&, const Site&) = default;
};

void block_barrier(Site site);

// What the lanes of a warp exchange when all of `mask` have come.
struct WarpCall {
  const char* function;
  unsigned mask = 0;
  Site site{};
  std::uint64_t value = 0;
  unsigned source = 0;  // the lane whose value comes back
};
struct WarpAnswer {
  std::uint64_t value = 0;
  unsigned nonzero = 0;  // lanes of the mask with a value other than 0
};
WarpAnswer warp_exchange(const WarpCall& call);
[[nodiscard]] unsigned running_lane();

}  // namespace reprise::test::cuda

// Of the thread that runs.
extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;
