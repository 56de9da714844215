#include "kernels/cuda/stopwatch.h"

#include <utility>

#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {

Stopwatch::Stopwatch(std::shared_ptr<Device> device) : device_(std::move(device)) {
  device_->make_current();
  check(cudaEventCreate(&begin_), "cudaEventCreate");
  const cudaError_t status = cudaEventCreate(&end_);
  if (status != cudaSuccess) (void)cudaEventDestroy(begin_);
  check(status, "cudaEventCreate");
}

Stopwatch::~Stopwatch() {
  (void)cudaSetDevice(device_->ordinal());
  (void)cudaEventDestroy(begin_);
  (void)cudaEventDestroy(end_);
}

void Stopwatch::start() {
  check(cudaStreamSynchronize(device_->compute()), "cudaStreamSynchronize");
  check(cudaEventRecord(begin_, device_->compute()), "cudaEventRecord");
}

std::int64_t Stopwatch::stop_ns() {
  check(cudaEventRecord(end_, device_->compute()), "cudaEventRecord");
  check(cudaEventSynchronize(end_), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
  return static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
}

}  // namespace reprise::kernels::cuda
