#pragma once

#include <memory>

#include "kernels/cuda/device.h"
#include "kernels/device_memory.h"

namespace reprise::kernels::cuda {

// One GPU's memory, by cudaMalloc.
class CudaMemory final : public DeviceMemory {
 public:
  explicit CudaMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  [[nodiscard]] std::byte* reserve(base::Bytes bytes) override;
  void release(std::byte* reserved) noexcept override;
  [[nodiscard]] base::Bytes available_bytes() const override;
  void read(const std::byte* from, std::span<std::byte> to) override;
  void write(std::byte* to, std::span<const std::byte> from) override;
  void fill(std::byte* to, std::byte value, base::Bytes bytes) override;
  void wait() override;

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace reprise::kernels::cuda
