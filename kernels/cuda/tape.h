#pragma once

// One step as a CUDA graph.

#include <functional>
#include <string>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace reprise::kernels::cuda {

// The first step runs plainly (libraries load and choose kernels then), the second is recorded and
// played, the others only played. What cannot be recorded runs plainly for good.
class CudaTape final : public Tape {
 public:
  explicit CudaTape(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~CudaTape() override;

  // `queue` queues the instructions on the device's compute stream.
  void run(const std::function<void()>& queue);

  [[nodiscard]] bool plays() const { return executable_ != nullptr; }
  // Why the step is not recorded; empty while it is or may be.
  [[nodiscard]] const std::string& refused() const { return refused_; }

 private:
  void record(const std::function<void()>& queue);

  std::shared_ptr<Device> device_;
  cudaGraphExec_t executable_ = nullptr;
  bool warm_ = false;
  std::string refused_;
};

}  // namespace reprise::kernels::cuda
