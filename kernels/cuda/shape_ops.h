#pragma once

// Moving elements of four bytes (as std::int32_t) or two (as BFloat16), on the device.

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

#include "kernels/cuda/element.h"

namespace reprise::kernels::cuda {

// to[row * to_stride + i] = from[row * from_stride + i] for each row and i < width.
struct RowCopy {
  std::int64_t rows = 0, width = 0;
  std::int64_t from_stride = 0, to_stride = 0;
};
template <class T>
void launch_copy_rows(const RowCopy& copy, const T* from, T* to, cudaStream_t stream);

void launch_fill(float value, float* y, std::int64_t count, cudaStream_t stream);

}  // namespace reprise::kernels::cuda
