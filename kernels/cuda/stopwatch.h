#pragma once

// Times what is queued on the compute stream, by the device's own clock.

#include <cstdint>
#include <memory>

#include "kernels/cuda/device.h"

namespace reprise::kernels::cuda {

class Stopwatch {
 public:
  explicit Stopwatch(std::shared_ptr<Device> device);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Waits until the device is idle, so that the queue's length does not count.
  void start();
  // Waits, and returns the nanoseconds since start(), to about half a microsecond.
  [[nodiscard]] std::int64_t stop_ns();

 private:
  std::shared_ptr<Device> device_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace reprise::kernels::cuda
