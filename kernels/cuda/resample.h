#pragma once

// Repeating pixels and adding them up again, on the device. T: element.h.

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

#include "kernels/cuda/element.h"

namespace reprise::kernels::cuda {

// y[i] = factor * x[i / repeats]
template <class T>
void launch_repeat(std::int64_t repeats, float factor, const T* x, T* y, std::int64_t y_count,
                   cudaStream_t stream);

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
template <class T>
void launch_upsample(const UpsampleSizes& s, const T* x, T* y, cudaStream_t stream);
template <class T>
void launch_upsample_grad(const UpsampleSizes& s, const T* dy, T* dx, cudaStream_t stream);

}  // namespace reprise::kernels::cuda
