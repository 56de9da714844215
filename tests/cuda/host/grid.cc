#include "host/grid.h"

#include <array>
#include <fmt/format.h>

#include "host/block.h"
#include "host/shared_memory.h"

constinit thread_local uint3 threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local dim3 blockDim{};
constinit thread_local dim3 gridDim{};

namespace reprise::test::cuda {
namespace {

struct Chosen {
  ThreadOrder order = ThreadOrder::kForward;
  std::uint64_t seed = 0;
};
constinit thread_local Chosen chosen{};
// The block that runs on this thread of the host.
constinit thread_local Block* current = nullptr;

struct CurrentBlock {
  explicit CurrentBlock(Block& block) { current = &block; }
  ~CurrentBlock() { current = nullptr; }
};

Block& running_block() {
  if (current == nullptr) throw KernelFault("a barrier or warp function outside of any kernel");
  return *current;
}

std::string text(dim3 d) {
  return fmt::format("({}, {}, {})", d.x, d.y, d.z);
}

void check_shape(const char* kernel, dim3 grid, dim3 block) {
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kThreadsOfBlock || block.z > 64)
    throw KernelFault(
        fmt::format("kernel {}: a block of {} threads; it has 1 to {} of them, and "
                    "at most 64 along z",
                    kernel, text(block), kThreadsOfBlock));
  if (grid.x > 0x7fffffffU || grid.y > 0xffffU || grid.z > 0xffffU)
    throw KernelFault(
        fmt::format("kernel {}: a grid of {} blocks; it has at most 2^31 - 1 along x "
                    "and 65535 along y and z",
                    kernel, text(grid)));
}

// Of block i in some order of all n blocks.
std::size_t block_at(std::size_t i, std::size_t n) {
  if (chosen.order == ThreadOrder::kForward) return i;
  if (chosen.order == ThreadOrder::kReverse) return n - 1 - i;
  // A step that has no factor in common with n meets every block once.
  std::size_t step = 1 + (chosen.seed * 2 + 0x9e3779b97f4a7c15U) % n;
  while (std::gcd(step, n) != 1) ++step;
  return (chosen.seed + i * step) % n;
}

}  // namespace

const char* to_string(ThreadOrder order) {
  constexpr std::array names = {"forward", "reverse", "random"};
  return names[static_cast<std::size_t>(order)];
}

void set_thread_order(ThreadOrder order, std::uint64_t seed) {
  chosen = {order, seed};
}

void run_grid(const char* kernel, dim3 grid, dim3 block, const std::function<void()>& thread) {
  check_shape(kernel, grid, block);
  if (current != nullptr)
    throw KernelFault(fmt::format("kernel {}: started from within a kernel", kernel));
  OrderMaker order(chosen.order, chosen.seed + 1);
  Block runner(kernel, block, thread, order);
  const CurrentBlock scope(runner);
  gridDim = grid;
  blockDim = block;
  SharedMemory shared;
  shared.poison_all();
  const std::size_t blocks = std::size_t{grid.x} * grid.y * grid.z;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t b = block_at(i, blocks);
    blockIdx = {static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y),
                static_cast<unsigned>(b / grid.x / grid.y)};
    if (i > 0) shared.poison_used();
    runner.run();
    if (i > 0) continue;
    if (const std::size_t bytes = shared.find_used(); bytes > kSharedBytes)
      throw KernelFault(fmt::format("kernel {}: {} bytes of shared memory; a block has {}", kernel,
                                    bytes, kSharedBytes));
  }
}

void block_barrier(Site site) {
  running_block().barrier(site);
}
WarpAnswer warp_exchange(const WarpCall& call) {
  return running_block().exchange(call);
}
unsigned running_lane() {
  return running_block().lane();
}

}  // namespace reprise::test::cuda
