// cudart: copies and fills.
//
// Pageable memory of the host is read at the call; pinned memory is read and written when the copy
// runs; that the host changes it between is a fault. A copy to pageable memory is over on return,
// whatever its name.

#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <string_view>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/capture.h"
#include "tests/cuda/double/faults.h"
#include "tests/cuda/double/memory.h"

using namespace reprise::test::cuda;

namespace {

enum class Place { kDevice, kPinned, kPageable };

Place place_of(const void* address) {
  if (is_device_address(address)) return Place::kDevice;
  return memory().find(address).pinned ? Place::kPinned : Place::kPageable;
}

// Where an operation finds the bytes when it runs.
std::byte* bytes_of(const void* address, std::size_t bytes) {
  if (is_device_address(address)) return storage(address, bytes);
  return const_cast<std::byte*>(static_cast<const std::byte*>(address));
}

cudaMemcpyKind kind_of(Place to, Place from) {
  if (to == Place::kDevice)
    return from == Place::kDevice ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return from == Place::kDevice ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

struct Copy {
  const char* name;
  void* to;
  const void* from;
  std::size_t bytes;
  cudaMemcpyKind kind;
  bool asynchronous;
};

// What the host put into pinned memory must be there still when the copy reads it.
void watch_source(const Copy& copy, const OperationRef& operation) {
  if (!engine().known_to_host(copy.from, copy.bytes)) return;  // another operation writes it
  const auto content = [copy] {
    return std::hash<std::string_view>()({static_cast<const char*>(copy.from), copy.bytes});
  };
  const std::string name = *operation->actor.name;
  operation->task.work = [copy, name, content, before = content(),
                          work = std::move(operation->task.work)] {
    if (content() != before)
      fault(fmt::format("{} finds {} changed since it was queued", name,
                        memory().describe(copy.from, copy.bytes)));
    work();
  };
}

Task task_of(const Copy& copy, Place to, Place from) {
  Task task{copy.name, Kind::kCopy, {}, {}, {}};
  if (from != Place::kPageable) task.touched.push_back({copy.from, copy.bytes, false});
  if (to != Place::kPageable) task.touched.push_back({copy.to, copy.bytes, true});
  std::shared_ptr<std::vector<std::byte>> snapshot;
  if (from == Place::kPageable) {
    const auto* const first = static_cast<const std::byte*>(copy.from);
    snapshot = std::make_shared<std::vector<std::byte>>(first, first + copy.bytes);
  }
  task.work = [copy, snapshot, kind = kind_of(to, from)] {
    const std::byte* const source = snapshot ? snapshot->data() : bytes_of(copy.from, copy.bytes);
    std::memmove(bytes_of(copy.to, copy.bytes), source, copy.bytes);
    count_bytes(kind, copy.bytes);
  };
  if (from == Place::kPinned)
    task.enlist = [copy](const OperationRef& operation) { watch_source(copy, operation); };
  return task;
}

cudaError_t run_copy(cudaStream_t stream, const Copy& copy) {
  return device_api(copy.name, [&]() -> cudaError_t {
    const cudaStream_t on = engine().resolve(stream);
    if (on == nullptr) {
      fault(std::string(copy.name) + " on a stream that is not there");
      return cudaErrorInvalidResourceHandle;
    }
    if (!copy.asynchronous) {
      const cudaError_t unsafe = unsafe_now();
      if (unsafe != cudaSuccess) return unsafe;
    }
    if (copy.bytes == 0) return cudaSuccess;
    const Place to = place_of(copy.to);
    const Place from = place_of(copy.from);
    if (copy.kind != cudaMemcpyDefault && copy.kind != kind_of(to, from)) {
      fault(std::string(copy.name) + ": the direction is not that of the addresses");
      return cudaErrorInvalidValue;
    }
    const bool pageable = to == Place::kPageable || from == Place::kPageable;
    if (on->capture && pageable) return breaks(on);
    const cudaError_t status = engine().submit(on, task_of(copy, to, from));
    if (status != cudaSuccess || on->capture) return status;
    const bool waits = to == Place::kPageable || (!copy.asynchronous && from != Place::kPageable &&
                                                  kind_of(to, from) != cudaMemcpyDeviceToDevice);
    return !waits || engine().wait(on->tail) ? cudaSuccess : cudaErrorLaunchTimeout;
  });
}

cudaError_t run_fill(const char* name, cudaStream_t stream, void* to, int value,
                     std::size_t bytes) {
  return device_api(name, [&]() -> cudaError_t {
    const cudaStream_t on = engine().resolve(stream);
    if (on == nullptr) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaSuccess;
    if (place_of(to) == Place::kPageable) return cudaErrorInvalidValue;
    return engine().submit(on, {name,
                                Kind::kFill,
                                {{to, bytes, true}},
                                [=] { std::memset(bytes_of(to, bytes), value, bytes); },
                                {}});
  });
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return run_copy(nullptr, {"cudaMemcpy", to, from, bytes, kind, false});
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return run_copy(stream, {"cudaMemcpyAsync", to, from, bytes, kind, true});
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return run_fill("cudaMemset", nullptr, to, value, bytes);
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return run_fill("cudaMemsetAsync", stream, to, value, bytes);
}
