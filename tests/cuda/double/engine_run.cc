// Which of the queued operations runs next, and waiting for one.

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/engine.h"
#include "tests/cuda/double/faults.h"
#include "tests/cuda/double/memory.h"

namespace reprise::test::cuda {
namespace {

// How long a thread waits for others before what it waits for can no longer come.
constexpr auto kPatience = std::chrono::seconds(60);

}  // namespace

void Engine::set_policy(Policy policy, std::uint64_t seed) {
  policy_ = policy;
  random_state_ = seed;
}

// splitmix64
std::size_t Engine::random(std::size_t below) {
  random_state_ += 0x9E3779B97F4A7C15;
  std::uint64_t z = random_state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return static_cast<std::size_t>((z ^ (z >> 31)) % below);
}

void Engine::progress_after_append() {
  if (policy_ == Policy::kEager) {
    while (run_one(nullptr)) {
    }
  } else if (policy_ == Policy::kRandom) {
    for (std::size_t n = random(3); n > 0 && run_one(nullptr);) --n;
  }
}

// Everything that must be over before `wanted` is, by a walk without recursion.
void Engine::mark_needed(const OperationRef& wanted) {
  ++waits_;
  std::vector<Operation*> open{wanted.get()};
  while (!open.empty()) {
    Operation* const operation = open.back();
    open.pop_back();
    if (operation->done || operation->needed_by == waits_) continue;
    operation->needed_by = waits_;
    for (const OperationRef& other : operation->predecessors) open.push_back(other.get());
  }
}

std::size_t Engine::choose(const Operation* wanted) {
  if (policy_ == Policy::kRandom) return random(ready_.size());
  if (wanted == nullptr || policy_ == Policy::kEager) return 0;
  const bool want_needed = policy_ == Policy::kStarve;
  std::vector<std::size_t> preferred;
  for (std::size_t i = 0; i < ready_.size(); ++i)
    if ((ready_[i]->needed_by == waits_) == want_needed) preferred.push_back(i);
  return preferred.empty() ? random(ready_.size()) : preferred[random(preferred.size())];
}

bool Engine::run_one(const Operation* wanted) {
  if (ready_.empty()) return false;
  const std::size_t chosen = choose(wanted);
  const OperationRef operation = ready_[chosen];
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(chosen));
  run(operation);
  return true;
}

void Engine::run(const OperationRef& operation) {
  const Task& task = operation->task;
  if (operation->refused) {
    break_device(operation->device, cudaErrorIllegalAddress);
    finish(operation);
    return;
  }
  if (task.kind == Kind::kKernel) count_kernel();
  try {
    for (const Range& range : task.touched)
      if (range.bytes > 0) (void)memory().holding(range.begin, range.bytes);
    inside_operation() = true;
    if (task.work) task.work();
  } catch (const std::exception& error) {
    fault(fmt::format("{}: {}", *operation->actor.name, error.what()));
    break_device(operation->device, cudaErrorIllegalAddress);
  }
  inside_operation() = false;
  finish(operation);
}

void Engine::finish(const OperationRef& operation) {
  operation->done = true;
  operation->task.work = nullptr;
  operation->arrive = nullptr;
  operation->predecessors.clear();
  for (const OperationRef& next : operation->successors) {
    if (--next->waiting > 0 || next->done) continue;
    if (next->arrive)
      next->arrive();
    else
      ready_.push_back(next);
  }
  operation->successors.clear();
  pending_.erase(operation);
  changed.notify_all();
}

void Engine::make_ready(const OperationRef& operation) {
  if (!operation->done) ready_.push_back(operation);
}

void Engine::hold(const OperationRef& operation) {
  ready_.erase(std::remove(ready_.begin(), ready_.end(), operation), ready_.end());
}

void Engine::give_up(const OperationRef& operation) {
  if (operation->done) return;
  hold(operation);
  operation->task.work = nullptr;
  operation->arrive = nullptr;
  if (operation->waiting == 0) finish(operation);
}

bool Engine::wait(const OperationRef& operation) {
  if (!operation) return true;
  auto last_progress = std::chrono::steady_clock::now();
  while (!operation->done) {
    if (policy_ != Policy::kRandom) mark_needed(operation);
    bool ran = false;
    while (!operation->done && run_one(operation.get())) ran = true;
    if (operation->done) break;
    const auto now = std::chrono::steady_clock::now();
    if (ran) last_progress = now;
    if (now - last_progress > kPatience) {
      fault(fmt::format("the host waits for ever for {}", *operation->actor.name));
      return false;
    }
    changed.wait_for(mutex, std::chrono::milliseconds(20));
  }
  host_clock_.join(operation->clock);
  return true;
}

bool Engine::poll(const OperationRef& operation) {
  if (!operation) return true;
  if (!operation->done) {
    mark_needed(operation);
    run_one(operation.get());
  }
  if (operation->done) host_clock_.join(operation->clock);
  return operation->done;
}

bool Engine::wait_for_device(int device) {
  std::vector<OperationRef> tails;
  for (const cudaStream_t stream : live_)
    if (stream->device == device && stream->tail) tails.push_back(stream->tail);
  for (const OperationRef& orphan : orphans_)
    if (orphan->device == device) tails.push_back(orphan);
  return std::all_of(tails.begin(), tails.end(), [&](const auto& tail) { return wait(tail); });
}

}  // namespace reprise::test::cuda
