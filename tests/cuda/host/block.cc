#include "host/block.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace reprise::test::cuda {
namespace {

std::string at(Site site) {
  return fmt::format("{}:{}", site.file, site.line);
}

std::vector<uint3> thread_indices(dim3 shape) {
  std::vector<uint3> indices;
  indices.reserve(std::size_t{shape.x} * shape.y * shape.z);
  for (unsigned z = 0; z < shape.z; ++z)
    for (unsigned y = 0; y < shape.y; ++y)
      for (unsigned x = 0; x < shape.x; ++x) indices.push_back({x, y, z});
  return indices;
}

}  // namespace

// A fiber that runs threads of whatever block it is given.
struct Block::Worker {
  Worker() : fiber(&serve, this) {}

  static void serve(void* self) {
    auto& worker = *static_cast<Worker*>(self);
    for (;;) {
      worker.block->run_fresh_threads();
      worker.fiber.leave();
    }
  }

  // Idle ones of this thread of the host. A worker that a fault left in the middle of a kernel does
  // not come back here.
  static std::vector<std::unique_ptr<Worker>>& idle() {
    static thread_local std::vector<std::unique_ptr<Worker>> workers;
    return workers;
  }
  static std::unique_ptr<Worker> take(Block& block) {
    std::unique_ptr<Worker> worker;
    if (idle().empty()) {
      worker = std::make_unique<Worker>();
    } else {
      worker = std::move(idle().back());
      idle().pop_back();
    }
    worker->block = &block;
    return worker;
  }

  Block* block = nullptr;
  Fiber fiber;
};

Block::Block(const char* kernel, dim3 shape, const std::function<void()>& body, OrderMaker& order)
    : kernel_(kernel),
      body_(body),
      order_(order),
      indices_(thread_indices(shape)),
      states_(indices_.size()),
      waiting_(indices_.size()),
      warp_order_((indices_.size() + kLanes - 1) / kLanes),
      lane_order_(kLanes) {}

Block::~Block() = default;

void Block::run() {
  std::ranges::fill(states_, State::kFresh);
  any_blocked_ = false;
  do {
    order_.arrange(warp_order_);
    for (warp_turn_ = 0; warp_turn_ < warp_order_.size(); ++warp_turn_) run_warp();
  } while (open_barrier());
}

// As far as it can go. Fresh threads may have taken the turns of further warps with them.
void Block::run_warp() {
  do {
    order_.arrange(lane_order_);
    for (lane_turn_ = 0; lane_turn_ < kLanes; ++lane_turn_) {
      const std::size_t thread = warp_order_[warp_turn_] * kLanes + lane_order_[lane_turn_];
      if (thread < states_.size()) run_thread(thread);
    }
  } while (any_blocked_ && complete_calls(warp_order_[warp_turn_]));
}

void Block::run_thread(std::size_t thread) {
  const State state = states_[thread];
  if (state != State::kFresh && state != State::kReady) return;
  std::unique_ptr<Worker> worker =
      state == State::kFresh ? Worker::take(*this) : std::move(waiting_[thread].worker);
  choose(thread);
  worker_ = worker.get();
  worker_->fiber.enter();
  if (states_[running_] != State::kDone)  // another one than `thread`, where fresh ones followed it
    waiting_[running_].worker = std::move(worker);
  else
    Worker::idle().push_back(std::move(worker));
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Block::choose(std::size_t thread) {
  running_ = thread;
  threadIdx = indices_[thread];
}

void Block::run_fresh_threads() {
  do {
    try {
      body_();
    } catch (...) {
      failure_ = std::current_exception();
    }
    states_[running_] = State::kDone;
  } while (!failure_ && !any_blocked_ && choose_next_fresh());
}

// Only while nothing has blocked: then every thread behind the turns is fresh.
bool Block::choose_next_fresh() {
  for (;;) {
    if (++lane_turn_ >= kLanes) {
      if (warp_turn_ + 1 >= warp_order_.size()) return false;
      ++warp_turn_;
      order_.arrange(lane_order_);
      lane_turn_ = 0;
    }
    const std::size_t thread = warp_order_[warp_turn_] * kLanes + lane_order_[lane_turn_];
    if (thread >= states_.size()) continue;  // the last warp has fewer lanes
    choose(thread);
    return true;
  }
}

void Block::wait(State state) {
  states_[running_] = state;
  any_blocked_ = true;
  worker_->fiber.leave();
}

void Block::barrier(Site site) {
  waiting_[running_].barrier = site;
  wait(State::kAtBarrier);
}

bool Block::open_barrier() {
  if (!any_blocked_) return false;
  const auto first = std::ranges::find(states_, State::kAtBarrier);
  if (first == states_.end()) return false;
  const auto waiter = static_cast<std::size_t>(first - states_.begin());
  const Site site = waiting_[waiter].barrier;
  for (std::size_t t = 0; t < states_.size(); ++t)
    if (states_[t] != State::kAtBarrier || waiting_[t].barrier != site)
      throw fault(fmt::format("divergent barrier: thread {} {}, and thread {} {}", waiter,
                              doing(waiter), t, doing(t)));
  std::ranges::fill(states_, State::kReady);
  return true;
}

WarpAnswer Block::exchange(const WarpCall& call) {
  const std::size_t thread = running_;
  const std::size_t lanes = lanes_of(thread / kLanes);
  const auto refuse = [&](const std::string& why) {
    return fault(fmt::format("thread {} calls {} at {} with mask {:#010x}, {}", thread,
                             call.function, at(call.site), call.mask, why));
  };
  if ((call.mask >> lane() & 1U) == 0)
    throw refuse(fmt::format("which does not name its own lane {}", lane()));
  if (lanes < kLanes && call.mask >> lanes != 0)
    throw refuse(fmt::format("but its warp has only {} lanes", lanes));
  if ((call.mask >> call.source & 1U) == 0)
    throw refuse(fmt::format("and reads lane {}, which is not in it", call.source));
  waiting_[thread].call = call;
  wait(State::kInWarpCall);
  return waiting_[thread].answer;
}

bool Block::complete_calls(std::size_t warp) {
  const std::size_t begin = warp * kLanes;
  const std::size_t end = begin + lanes_of(warp);
  std::size_t stuck = end;
  bool completed = false;
  for (std::size_t t = begin; t < end; ++t) {
    if (states_[t] != State::kInWarpCall) continue;
    if (is_complete(warp, waiting_[t].call)) {
      complete(warp, waiting_[t].call);
      completed = true;
    } else if (stuck == end) {
      stuck = t;
    }
  }
  if (!completed && stuck != end) throw incomplete(warp, stuck);
  return completed;
}

bool Block::is_complete(std::size_t warp, const WarpCall& call) const {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if ((call.mask >> lane & 1U) == 0) continue;
    const std::size_t t = warp * kLanes + lane;
    const WarpCall& other = waiting_[t].call;
    if (states_[t] != State::kInWarpCall || other.mask != call.mask || other.site != call.site ||
        std::string_view(other.function) != call.function)
      return false;
  }
  return true;
}

void Block::complete(std::size_t warp, const WarpCall& call) {
  const unsigned mask = call.mask;
  const std::size_t begin = warp * kLanes;
  unsigned nonzero = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    if ((mask >> lane & 1U) != 0 && waiting_[begin + lane].call.value != 0) nonzero |= 1U << lane;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1U) == 0) continue;
    Waiting& one = waiting_[begin + lane];
    one.answer = {waiting_[begin + one.call.source].call.value, nonzero};
    states_[begin + lane] = State::kReady;
  }
}

std::size_t Block::lanes_of(std::size_t warp) const {
  return std::min(kLanes, states_.size() - warp * kLanes);
}

KernelFault Block::incomplete(std::size_t warp, std::size_t thread) const {
  const WarpCall& call = waiting_[thread].call;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::size_t t = warp * kLanes + lane;
    if ((call.mask >> lane & 1U) != 0 && t != thread &&
        (states_[t] != State::kInWarpCall || waiting_[t].call.mask != call.mask ||
         waiting_[t].call.site != call.site))
      return fault(fmt::format("a lane of the mask is missing: thread {} {}, and thread {} {}",
                               thread, doing(thread), t, doing(t)));
  }
  return fault(fmt::format("the lanes of a mask call different functions: thread {} {}", thread,
                           doing(thread)));
}

std::string Block::doing(std::size_t thread) const {
  const Waiting& one = waiting_[thread];
  switch (states_[thread]) {
    case State::kAtBarrier:
      return fmt::format("waits at the barrier of {}", at(one.barrier));
    case State::kInWarpCall:
      return fmt::format("waits in {} of {} with mask {:#010x}", one.call.function,
                         at(one.call.site), one.call.mask);
    case State::kDone:
      return "has ended";
    default:
      return "runs";
  }
}

KernelFault Block::fault(const std::string& what) const {
  return KernelFault(fmt::format("kernel {}, block ({}, {}, {}): {}", kernel_, blockIdx.x,
                                 blockIdx.y, blockIdx.z, what));
}

}  // namespace reprise::test::cuda
