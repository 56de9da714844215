#pragma once

// The StepValues of one program: worked out on the host, copied to the device ahead of a step.

#include <memory>
#include <optional>

#include "kernels/cuda/booking.h"
#include "kernels/cuda/step_values.h"

namespace reprise::kernels::cuda {

class StepBuffer {
 public:
  StepBuffer(std::shared_ptr<Device> device, std::shared_ptr<DeviceMemory> memory,
             StepScalars scalars);
  ~StepBuffer();
  StepBuffer(const StepBuffer&) = delete;
  StepBuffer& operator=(const StepBuffer&) = delete;

  // Queues the copy of this step's values, unless the device has them already. Waits for the copy
  // before it, whose source it writes over.
  void set(const graph::StepContext& context);
  [[nodiscard]] const StepValues* on_device() const { return on_device_; }

 private:
  void close() noexcept;
  [[nodiscard]] std::size_t bytes() const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<DeviceMemory> memory_;
  StepScalars scalars_;
  StepValues* pinned_ = nullptr;
  StepValues* on_device_ = nullptr;
  cudaEvent_t copied_ = nullptr;
  std::optional<graph::StepContext> newest_;
};

}  // namespace reprise::kernels::cuda
