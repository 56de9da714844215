#pragma once

// The threads of one block (host/grid.h says how they run).

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/fiber.h"
#include "host/grid.h"
#include "host/thread_order.h"

namespace reprise::test::cuda {

inline constexpr std::size_t kLanes = 32;

// A kernel's fibers serve one thread after another: as long as no thread of the block has blocked,
// the next one starts on the same fiber without leaving it, so that a kernel without barriers is a
// plain loop.
class Block {
 public:
  Block(const char* kernel, dim3 shape, const std::function<void()>& body, OrderMaker& order);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Runs every thread once, in the block that blockIdx says. Throws KernelFault, or what the kernel
  // threw.
  void run();

  // From a thread of the kernel:
  void barrier(Site site);
  WarpAnswer exchange(const WarpCall& call);
  [[nodiscard]] unsigned lane() const { return static_cast<unsigned>(running_ % kLanes); }

 private:
  enum class State : unsigned char { kFresh, kReady, kInWarpCall, kAtBarrier, kDone };
  struct Worker;
  struct Waiting {
    std::unique_ptr<Worker> worker;
    Site barrier{};
    WarpCall call{};
    WarpAnswer answer{};
  };

  void run_warp();
  void run_thread(std::size_t thread);
  void choose(std::size_t thread);
  void run_fresh_threads();  // on a worker, from the chosen one on
  bool choose_next_fresh();
  void wait(State state);
  // Lanes whose call all lanes of its mask have made go on. False if no lane is in a call.
  bool complete_calls(std::size_t warp);
  [[nodiscard]] bool is_complete(std::size_t warp, const WarpCall& call) const;
  void complete(std::size_t warp, const WarpCall& call);
  // False if no thread waits at the barrier; all those that do go on.
  bool open_barrier();

  [[nodiscard]] std::size_t lanes_of(std::size_t warp) const;
  [[nodiscard]] KernelFault fault(const std::string& what) const;
  [[nodiscard]] KernelFault incomplete(std::size_t warp, std::size_t thread) const;
  [[nodiscard]] std::string doing(std::size_t thread) const;

  const char* kernel_;
  const std::function<void()>& body_;
  OrderMaker& order_;
  std::vector<uint3> indices_;
  std::vector<State> states_;
  std::vector<Waiting> waiting_;  // of threads that have blocked
  std::vector<std::size_t> warp_order_;
  std::vector<std::size_t> lane_order_;

  std::size_t running_ = 0;
  std::size_t warp_turn_ = 0;  // in warp_order_
  std::size_t lane_turn_ = 0;  // in lane_order_
  bool any_blocked_ = false;
  Worker* worker_ = nullptr;  // that runs
  std::exception_ptr failure_;
};

}  // namespace reprise::test::cuda
