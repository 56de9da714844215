#include "tests/cuda/double/engine.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/capture.h"
#include "tests/cuda/double/faults.h"
#include "tests/cuda/double/memory.h"

namespace reprise::test::cuda {
namespace {

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
  if (const auto enlist = std::exchange(operation->task.enlist, nullptr)) enlist(operation);
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

}  // namespace reprise::test::cuda
