#pragma once

// What the double of CUDA's host APIs offers to those who put work on its streams: the tests' form
// of kernels/cuda/platform/launch.h, and the double's own libraries.
//
// Device memory has two addresses. The one that cudaMalloc gives is never accessible: a host that
// reads through it ends the test with a message. The bytes lie elsewhere, and storage() says where.

#include <cstddef>
#include <cuda_runtime.h>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace reprise::test::cuda {

// Bytes that an operation reads or writes, by device address (or by host address where pinned).
struct Range {
  const void* begin = nullptr;
  std::size_t bytes = 0;
  bool written = false;
};

// An address that is in no allocation, or bytes that reach over the end of one.
class BadAddress : public std::out_of_range {
 public:
  using std::out_of_range::out_of_range;
};

[[nodiscard]] bool is_device_address(const void* address);

// Where the bytes of a device address lie. All `bytes` lie within one allocation; throws BadAddress
// otherwise. Call it from `work`, when the operation runs: memory may have been freed meanwhile.
[[nodiscard]] std::byte* storage(const void* device_address, std::size_t bytes = 1);
// The same for typed pointers, the end of an allocation included; null and host addresses come back
// as they are.
template <class T>
[[nodiscard]] T* translated(T* pointer) {
  if (!is_device_address(pointer)) return pointer;
  return reinterpret_cast<T*>(storage(pointer, 0));
}

// Queues a kernel on a stream, or makes it a node of the graph that the stream is recording.
// Nothing runs before something waits for it (or earlier, see Policy). Every range must lie within
// one allocation, now and when it runs, and must be ordered after every operation that touches the
// same bytes where one of the two writes. An exception from `work` is a fault (see control.h).
// Null is the legacy default stream. Returns what cudaGetLastError would after the launch, and
// keeps it for that call.
cudaError_t enqueue(cudaStream_t stream, std::string name, std::vector<Range> touched,
                    std::function<void()> work);

}  // namespace reprise::test::cuda
