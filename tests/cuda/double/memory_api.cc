// cudart: memory of the device and pinned memory of the host.

#include <fmt/format.h>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/capture.h"
#include "tests/cuda/double/faults.h"
#include "tests/cuda/double/memory.h"

using namespace reprise::test::cuda;

namespace {

// Freeing is an access of the host to all of it: what still may run must not touch it.
cudaError_t release(void* address, bool pinned, const char* call) {
  if (address == nullptr) return cudaSuccess;
  const Allocation allocation = memory().find(address);
  if (allocation.bytes == 0 || reinterpret_cast<void*>(allocation.begin) != address) {
    fault(fmt::format("{} of {}", call, memory().describe(address, 1)));
    return cudaErrorInvalidValue;
  }
  engine().host_access(address, allocation.bytes, true, call);
  engine().order().forget(address, allocation.bytes);
  return memory().release(address, pinned) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t allocate_pinned(void** address, std::size_t bytes) {
  const cudaError_t unsafe = unsafe_now();
  if (unsafe != cudaSuccess) return unsafe;
  *address = bytes == 0 ? nullptr : memory().allocate_pinned(bytes, current_device());
  if (bytes > 0) engine().order().forget(*address, bytes);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  return device_api("cudaMalloc", [&] {
    const cudaError_t unsafe = unsafe_now();
    if (unsafe != cudaSuccess) return unsafe;
    const int device = current_device();
    const std::size_t taken = memory().used(device) + overhead(device);
    if (taken > machine().memory_bytes || bytes > machine().memory_bytes - taken)
      return cudaErrorMemoryAllocation;
    *address = bytes == 0 ? nullptr : memory().allocate(bytes, device);
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* address) {
  return device_api("cudaFree", [&] {
    const cudaError_t unsafe = unsafe_now();
    return unsafe != cudaSuccess ? unsafe : release(address, false, "cudaFree");
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return device_api("cudaMemGetInfo", [&] {
    const int device = current_device();
    *total_bytes = machine().memory_bytes;
    const std::size_t taken = memory().used(device) + overhead(device);
    *free_bytes = taken < *total_bytes ? *total_bytes - taken : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  return device_api("cudaMallocHost", [&] { return allocate_pinned(address, bytes); });
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  return device_api("cudaHostAlloc", [&] { return allocate_pinned(address, bytes); });
}

cudaError_t cudaFreeHost(void* address) {
  return device_api("cudaFreeHost", [&] { return release(address, true, "cudaFreeHost"); });
}

cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned) {
  return device_api("cudaHostRegister", [&] {
    if (memory().find(address).bytes > 0) return cudaErrorHostMemoryAlreadyRegistered;
    memory().pin(address, bytes, current_device());
    engine().order().forget(address, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* address) {
  return device_api("cudaHostUnregister",
                    [&] { return release(address, true, "cudaHostUnregister"); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return device_api("cudaPointerGetAttributes", [&] {
    const Allocation allocation = memory().find(address);
    *attributes = {};
    attributes->device = allocation.bytes > 0 ? allocation.device : -2;  // cudaInvalidDeviceId
    if (allocation.bytes == 0) {
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->hostPointer = const_cast<void*>(address);
      return cudaSuccess;
    }
    attributes->type = allocation.pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    attributes->devicePointer = const_cast<void*>(address);
    if (allocation.pinned) attributes->hostPointer = const_cast<void*>(address);
    return cudaSuccess;
  });
}
