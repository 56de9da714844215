#pragma once

// Sizes of grids, and what kernels that walk over arrays share.

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

namespace reprise::kernels::cuda {

inline constexpr int kBlock = 256;

// As many blocks as `items` threads need, one at least and `most` at most: kernels walk on by the
// size of the grid. It depends on sizes alone, never on the GPU.
[[nodiscard]] inline dim3 grid_for(std::int64_t items, std::int64_t most = std::int64_t{1} << 16,
                                   int block = kBlock) {
  const std::int64_t blocks = (items + block - 1) / block;
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, most)));
}

}  // namespace reprise::kernels::cuda
