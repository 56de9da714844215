#include "tests/cuda/double/engine.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/capture.h"
#include "tests/cuda/double/faults.h"
#include "tests/cuda/double/memory.h"

namespace reprise::test::cuda {
namespace {

// How long a thread waits for others before what it waits for can no longer come.
constexpr auto kPatience = std::chrono::seconds(60);

// Pretended seconds: a start and the memory's speed.
double duration(const Task& task) {
  if (task.kind == Kind::kMarker) return 0;
  std::size_t bytes = 0;
  for (const Range& range : task.touched) bytes += range.bytes;
  return 2e-6 + static_cast<double>(bytes) / 1e12;
}

const char* word(Kind kind) {
  switch (kind) {
    case Kind::kKernel:
      return "kernel";
    case Kind::kCopy:
      return "copy";
    case Kind::kFill:
      return "fill";
    case Kind::kHostFunction:
      return "host function";
    case Kind::kMarker:
      return "marker";
    case Kind::kCollective:
      return "collective";
  }
  return "";
}

}  // namespace

Engine& engine() {
  static Engine* const instance = new Engine;
  return *instance;
}

bool& inside_operation() {
  thread_local bool inside = false;
  return inside;
}

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

void Engine::reset() {
  for (const OperationRef& operation : pending_) {  // chains of references, taken apart flat
    operation->predecessors.clear();
    operation->successors.clear();
  }
  ready_.clear();
  pending_.clear();
  live_.clear();
  legacy_.clear();
  orphans_.clear();
  for (auto& stream : streams_) {  // old handles stay readable
    *stream = CUstream_st{};
    stream->alive = false;
  }
  order_ = Order{};
  host_chain_ = order_.new_chain();
  host_clock_ = Clock{};
  stream_numbers_ = 0;
  set_policy(Policy::kRandom, 0);
}

cudaStream_t Engine::new_stream(int device, bool blocking) {
  streams_.push_back(std::make_unique<CUstream_st>());
  const cudaStream_t stream = streams_.back().get();
  stream->number = ++stream_numbers_;
  stream->device = device;
  stream->blocking = blocking;
  stream->chain = order_.new_chain();
  live_.push_back(stream);
  return stream;
}

cudaStream_t Engine::resolve(cudaStream_t stream) {
  const auto value = reinterpret_cast<std::uintptr_t>(stream);
  if (value > 2) return known(stream) ? stream : nullptr;
  cudaStream_t& legacy = legacy_[current_device()];
  if (legacy == nullptr) {
    legacy = new_stream(current_device(), true);
    legacy->legacy = true;
  }
  return legacy;
}

void Engine::forget(cudaStream_t stream) {
  if (stream->tail && !stream->tail->done) orphans_.push_back(stream->tail);
  stream->alive = false;
  live_.erase(std::find(live_.begin(), live_.end(), stream));
}

bool Engine::known(cudaStream_t stream) const {
  return std::find(live_.begin(), live_.end(), stream) != live_.end();
}

OperationRef Engine::append(cudaStream_t stream, Task task, const std::vector<OperationRef>& also) {
  std::vector<OperationRef> after = also;
  if (stream->tail) after.push_back(stream->tail);
  for (const cudaStream_t other : live_) {  // the legacy stream and all blocking ones take turns
    if (other == stream || other->device != stream->device || !other->tail) continue;
    if (stream->blocking && other->blocking && (stream->legacy || other->legacy))
      after.push_back(other->tail);
  }
  const std::string place =
      stream->legacy ? "on the default stream" : fmt::format("on stream {}", stream->number);
  stream->tail = add(stream->device, stream->chain, place, std::move(task), after);
  const OperationRef result = stream->tail;
  progress_after_append();
  return result;
}

cudaError_t Engine::submit(cudaStream_t stream, Task task) {
  if (stream->capture) return record(stream, std::move(task));
  if (stream->legacy && legacy_breaks_a_capture(stream->device))
    return cudaErrorStreamCaptureImplicit;
  append(stream, std::move(task));
  return cudaSuccess;
}

OperationRef Engine::add(int device, Chain chain, std::string place, Task task,
                         const std::vector<OperationRef>& after) {
  const auto operation = std::make_shared<Operation>();
  operation->device = device;
  operation->actor = {chain, order_.next_tick(chain),
                      std::make_shared<const std::string>(
                          fmt::format("{} '{}' {}", word(task.kind), task.name, place))};
  operation->task = std::move(task);
  operation->clock = host_clock_;
  for (const OperationRef& other : after) {
    operation->clock.join(other->clock);
    operation->end = std::max(operation->end, other->end);
    if (other->done) continue;
    operation->predecessors.push_back(other);
    other->successors.push_back(operation);
    ++operation->waiting;
  }
  operation->end += duration(operation->task);
  check_ranges(*operation, operation->clock);
  operation->clock.set(chain, operation->actor.tick);
  pending_.insert(operation);
  if (operation->task.enlist) operation->task.enlist(operation);
  if (operation->waiting == 0) {
    if (operation->arrive)
      operation->arrive();
    else
      ready_.push_back(operation);
  }
  changed.notify_all();
  return operation;
}

void Engine::check_ranges(Operation& operation, const Clock& before) {
  for (const Range& range : operation.task.touched) {
    if (range.bytes == 0) continue;
    try {
      (void)memory().holding(range.begin, range.bytes);
    } catch (const BadAddress& error) {
      fault(fmt::format("{}: {}", *operation.actor.name, error.what()));
      operation.refused = true;
      continue;
    }
    for (const std::string& text :
         order_.access(range.begin, range.bytes, range.written, operation.actor, before))
      fault(text);
  }
}

void Engine::host_access(const void* begin, std::size_t bytes, bool written, const char* what) {
  const Actor host{host_chain_, order_.next_tick(host_chain_),
                   std::make_shared<const std::string>(fmt::format("the host ({})", what))};
  for (const std::string& text : order_.access(begin, bytes, written, host, host_clock_))
    fault(text);
  host_clock_.set(host_chain_, host.tick);
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
