#pragma once

// Repeating an array along axes, on the device.

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

#include "kernels/cuda/element.h"

namespace reprise::kernels::cuda {

// Axes of the output, innermost first, and how far apart neighbours lie in the input (0: repeated).
// Neighbouring axes of one kind are one axis.
struct BroadcastSizes {
  static constexpr int kMostAxes = 8;
  int axes = 0;
  std::int64_t size[kMostAxes] = {};
  std::int64_t stride[kMostAxes] = {};
  std::int64_t from_count = 1;
  std::int64_t to_count = 1;
};

void launch_broadcast(const BroadcastSizes& sizes, const float* x, float* y, cudaStream_t stream);

// y[i] = x[i] + row[i % columns], for a bias; y may be x. In and Out are those of element.h: float
// twice, or float to BFloat16.
template <class In, class Out>
void launch_add_row(const float* row, std::int64_t columns, const In* x, Out* y, std::int64_t count,
                    cudaStream_t stream);
// y[i] = x[i] + values[i / inner % channels], for the bias of an image: float twice or BFloat16
// twice.
template <class In, class Out>
void launch_add_channels(const float* values, std::int64_t channels, std::int64_t inner,
                         const In* x, Out* y, std::int64_t count, cudaStream_t stream);

}  // namespace reprise::kernels::cuda
