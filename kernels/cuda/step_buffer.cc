#include "kernels/cuda/step_buffer.h"

#include <utility>

#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {

StepBuffer::StepBuffer(std::shared_ptr<Device> device, std::shared_ptr<DeviceMemory> memory,
                       StepScalars scalars)
    : device_(std::move(device)), memory_(std::move(memory)), scalars_(std::move(scalars)) {
  device_->make_current();
  try {
    void* pinned = nullptr;
    check(cudaMallocHost(&pinned, bytes()), "cudaMallocHost");
    pinned_ = static_cast<StepValues*>(pinned);
    on_device_ = reinterpret_cast<StepValues*>(memory_->reserve(static_cast<Bytes>(bytes())));
    check(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming), "cudaEventCreate");
  } catch (...) {
    close();
    throw;
  }
}

StepBuffer::~StepBuffer() {
  close();
}

void StepBuffer::close() noexcept {
  (void)cudaSetDevice(device_->ordinal());
  (void)cudaStreamSynchronize(device_->compute());
  if (copied_ != nullptr) (void)cudaEventDestroy(copied_);
  if (on_device_ != nullptr) memory_->release(reinterpret_cast<std::byte*>(on_device_));
  if (pinned_ != nullptr) (void)cudaFreeHost(pinned_);
}

std::size_t StepBuffer::bytes() const {
  return offsetof(StepValues, scalars) + (scalars_.count() + 1) * sizeof(double);
}

void StepBuffer::set(const graph::StepContext& context) {
  if (newest_ == context) return;
  if (newest_) check(cudaEventSynchronize(copied_), "cudaEventSynchronize");
  newest_.reset();
  pinned_->seed = context.seed;
  pinned_->step = context.step;
  scalars_.evaluate(context, pinned_->scalars);
  check(cudaMemcpyAsync(on_device_, pinned_, bytes(), cudaMemcpyHostToDevice, device_->compute()),
        "cudaMemcpyAsync");
  check(cudaEventRecord(copied_, device_->compute()), "cudaEventRecord");
  newest_ = context;
}

}  // namespace reprise::kernels::cuda
