#pragma once

// Windowed pooling on the device, of images stored as T (element.h).

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

#include "kernels/cuda/element.h"

namespace reprise::kernels::cuda {

// `images` planes of x[H,W] and y[H',W'].
struct PoolSizes {
  std::int64_t images = 0;
  std::int64_t x_height = 0, x_width = 0;
  std::int64_t y_height = 0, y_width = 0;
  std::int64_t kernel[2] = {1, 1};
  std::int64_t stride[2] = {1, 1};
  std::int64_t padding[2] = {0, 0};
  bool count_padding = false;

  [[nodiscard]] __host__ __device__ std::int64_t x_count() const {
    return images * x_height * x_width;
  }
  [[nodiscard]] __host__ __device__ std::int64_t y_count() const {
    return images * y_height * y_width;
  }
};

// indices: the position in its window of the first largest pixel, counted row by row.
template <class T>
void launch_max_pool(const PoolSizes& s, const T* x, T* y, std::uint8_t* indices,
                     cudaStream_t stream);
template <class T>
void launch_max_pool_grad(const PoolSizes& s, const T* dy, const std::uint8_t* indices, T* dx,
                          cudaStream_t stream);
template <class T>
void launch_avg_pool(const PoolSizes& s, const T* x, T* y, cudaStream_t stream);
template <class T>
void launch_avg_pool_grad(const PoolSizes& s, const T* dy, T* dx, cudaStream_t stream);

}  // namespace reprise::kernels::cuda
