#pragma once

// A kernel is made once at plan time, where it books its workspace, and then only queues work.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "kernels/cuda/device.h"
#include "kernels/cuda/step_values.h"
#include "kernels/cuda/update_batch.h"

namespace reprise::kernels::cuda {

// One run of one node. All addresses are the device's.
struct Run {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* workspace = nullptr;
  std::size_t algorithm = 0;  // of those the kernel booked
  Device& device;
  const StepValues* step = nullptr;
  UpdateBatch& updates;
  const std::string& node;  // its name, for errors

  [[nodiscard]] cudaStream_t stream() const { return device.compute(); }
  template <class T = float>
  [[nodiscard]] const T* input(std::size_t i) const {
    return reinterpret_cast<const T*>(inputs[i]);
  }
  template <class T = float>
  [[nodiscard]] T* output(std::size_t i) const {
    return reinterpret_cast<T*>(outputs[i]);
  }
  template <class T = float>
  [[nodiscard]] T* scratch(std::size_t offset_bytes = 0) const {
    return reinterpret_cast<T*>(workspace + offset_bytes);
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Queues on run.stream() what writes every byte of the outputs, or, for an update, adds it to
  // run.updates. Allocates nothing, waits for nothing, and queues the same calls with the same
  // arguments each time.
  virtual void execute(const Run& run) = 0;
};

// A kernel from a callable f(const Run&).
template <class F>
class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(F function) : function_(std::move(function)) {}
  void execute(const Run& run) override { function_(run); }

 private:
  F function_;
};
template <class F>
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(F function) {
  return std::make_unique<FunctionKernel<F>>(std::move(function));
}

}  // namespace reprise::kernels::cuda
