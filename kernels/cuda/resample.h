#pragma once

// Repeating pixels and adding them up again, on the device.

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

namespace reprise::kernels::cuda {

// y[i] = factor * x[i / repeats]
void launch_repeat(std::int64_t repeats, float factor, const float* x, float* y,
                   std::int64_t y_count, cudaStream_t stream);

// `images` planes of [height, width], and the same `factor` times as high and as wide.
struct UpsampleSizes {
  std::int64_t images = 0, height = 0, width = 0, factor = 1;

  [[nodiscard]] __host__ __device__ std::int64_t small_count() const {
    return images * height * width;
  }
  [[nodiscard]] __host__ __device__ std::int64_t large_count() const {
    return small_count() * factor * factor;
  }
};
void launch_upsample(const UpsampleSizes& s, const float* x, float* y, cudaStream_t stream);
void launch_upsample_grad(const UpsampleSizes& s, const float* dy, float* dx, cudaStream_t stream);

}  // namespace reprise::kernels::cuda
