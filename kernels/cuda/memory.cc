#include "kernels/cuda/memory.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {

using base::Bytes;

std::byte* CudaMemory::reserve(Bytes bytes) {
  device_->make_current();
  const auto size = static_cast<std::size_t>(std::max<Bytes>(bytes, 1));
  void* reserved = nullptr;
  const cudaError_t status = cudaMalloc(&reserved, size);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // it would come up again at the next launch
    const Bytes available = available_bytes();
    throw base::device_error(
        "cannot reserve {} bytes ({}) on GPU {} ({}); {} bytes ({}) of {} are free: plan with a "
        "budget below that",
        bytes, base::format_bytes(bytes), device_->ordinal(), device_->name(), available,
        base::format_bytes(available), base::format_bytes(device_->total_bytes()));
  }
  check(status, "cudaMalloc");
  auto* const memory = static_cast<std::byte*>(reserved);
  fill(memory, std::byte{0}, static_cast<Bytes>(size));
  return memory;
}

void CudaMemory::release(std::byte* reserved) noexcept {
  (void)cudaSetDevice(device_->ordinal());
  // What is queued may still use it.
  (void)cudaStreamSynchronize(device_->copies());
  (void)cudaStreamSynchronize(device_->compute());
  (void)cudaFree(reserved);
}

Bytes CudaMemory::available_bytes() const {
  device_->make_current();
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<Bytes>(free);
}

void CudaMemory::read(const std::byte* from, std::span<std::byte> to) {
  if (to.empty()) return wait();
  device_->make_current();
  // Behind what is queued: both streams meet on the host.
  check(cudaStreamSynchronize(device_->copies()), "cudaStreamSynchronize");
  check(cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, device_->compute()),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(device_->compute()), "cudaStreamSynchronize");
}

void CudaMemory::write(std::byte* to, std::span<const std::byte> from) {
  wait();
  if (from.empty()) return;
  check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, device_->compute()),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(device_->compute()), "cudaStreamSynchronize");
}

void CudaMemory::fill(std::byte* to, std::byte value, Bytes bytes) {
  wait();
  if (bytes == 0) return;
  check(cudaMemsetAsync(to, static_cast<int>(value), static_cast<std::size_t>(bytes),
                        device_->compute()),
        "cudaMemsetAsync");
  check(cudaStreamSynchronize(device_->compute()), "cudaStreamSynchronize");
}

void CudaMemory::wait() {
  device_->make_current();
  check(cudaStreamSynchronize(device_->copies()), "cudaStreamSynchronize");
  check(cudaStreamSynchronize(device_->compute()), "cudaStreamSynchronize");
}

}  // namespace reprise::kernels::cuda
