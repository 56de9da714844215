// A thread for each pixel of the output. Gradients gather: a pixel of dx looks up the windows that
// hold it, always in the same order.

#include <limits>

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/pool.h"
#include "platform/launch.h"

namespace reprise::kernels::cuda {
namespace {

struct Range {
  int begin, end;
};

// Of x along one axis, inside of window `at`.
__device__ inline Range pixels_of_window(const PoolSizes& s, int axis, int at, int size) {
  const int begin = at * static_cast<int>(s.stride[axis]) - static_cast<int>(s.padding[axis]);
  const int end = begin + static_cast<int>(s.kernel[axis]);
  return {begin > 0 ? begin : 0, end < size ? end : size};
}

// Along one axis, those that hold pixel `at`.
__device__ inline Range windows_of_pixel(const PoolSizes& s, int axis, int at, int windows) {
  const int stride = static_cast<int>(s.stride[axis]);
  const int padded = at + static_cast<int>(s.padding[axis]);
  const int before = padded - static_cast<int>(s.kernel[axis]);  // the last pixel that is too far
  const int begin = before < 0 ? 0 : before / stride + 1;
  const int end = padded / stride + 1;
  return {begin, end < windows ? end : windows};
}

// The place of element i of a stack of planes.
template <class Index>
struct Pixel {
  std::int64_t plane;
  int row, column;
  __device__ Pixel(std::int64_t i, std::int64_t height, std::int64_t width) {
    const auto at = static_cast<Index>(i);
    const auto w = static_cast<Index>(width);
    const auto h = static_cast<Index>(height);
    column = static_cast<int>(at % w);
    row = static_cast<int>(at / w % h);
    plane = static_cast<std::int64_t>(at / w / h);
  }
};

__device__ inline std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t all_threads() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

template <class Index, class T>
__global__ void max_pool_kernel(PoolSizes s, const T* x, T* y, std::uint8_t* indices) {
  const auto kernel_width = static_cast<int>(s.kernel[1]);
  for (std::int64_t i = first_index(); i < s.y_count(); i += all_threads()) {
    const Pixel<Index> at(i, s.y_height, s.y_width);
    const T* plane = x + at.plane * s.x_height * s.x_width;
    const Range rows = pixels_of_window(s, 0, at.row, static_cast<int>(s.x_height));
    const Range columns = pixels_of_window(s, 1, at.column, static_cast<int>(s.x_width));
    const int top = at.row * static_cast<int>(s.stride[0]) - static_cast<int>(s.padding[0]);
    const int left = at.column * static_cast<int>(s.stride[1]) - static_cast<int>(s.padding[1]);
    float largest = 0.0F;
    int position = -1;
    for (int r = rows.begin; r < rows.end; ++r) {
      for (int c = columns.begin; c < columns.end; ++c) {
        const float value = number(plane[r * s.x_width + c]);
        if (position >= 0 && !(value > largest)) continue;
        largest = value;
        position = (r - top) * kernel_width + c - left;
      }
    }
    y[i] = stored<T>(largest);
    indices[i] = static_cast<std::uint8_t>(position);
  }
}

// dx[i]: the sum of term(window, position of the pixel in it) over the windows that hold it.
template <class Index, class T, class Term>
__device__ inline void gather(const PoolSizes& s, T* dx, const Term& term) {
  const auto kernel_width = static_cast<int>(s.kernel[1]);
  for (std::int64_t i = first_index(); i < s.x_count(); i += all_threads()) {
    const Pixel<Index> at(i, s.x_height, s.x_width);
    const std::int64_t plane = at.plane * s.y_height * s.y_width;
    const Range rows = windows_of_pixel(s, 0, at.row, static_cast<int>(s.y_height));
    const Range columns = windows_of_pixel(s, 1, at.column, static_cast<int>(s.y_width));
    float sum = 0.0F;
    for (int r = rows.begin; r < rows.end; ++r) {
      const int of_row = at.row + static_cast<int>(s.padding[0] - r * s.stride[0]);
      for (int c = columns.begin; c < columns.end; ++c) {
        const int of_column = at.column + static_cast<int>(s.padding[1] - c * s.stride[1]);
        sum += term(plane + r * s.y_width + c, r, c, of_row * kernel_width + of_column);
      }
    }
    dx[i] = stored<T>(sum);
  }
}

template <class Index, class T>
__global__ void max_pool_grad_kernel(PoolSizes s, const T* dy, const std::uint8_t* indices, T* dx) {
  gather<Index>(s, dx, [&](std::int64_t window, int, int, int position) {
    return indices[window] == position ? number(dy[window]) : 0.0F;
  });
}

// How many pixels the average of a window is over.
__device__ inline float window_size(const PoolSizes& s, int row, int column) {
  if (s.count_padding) return static_cast<float>(s.kernel[0] * s.kernel[1]);
  const Range rows = pixels_of_window(s, 0, row, static_cast<int>(s.x_height));
  const Range columns = pixels_of_window(s, 1, column, static_cast<int>(s.x_width));
  return static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
}

template <class Index, class T>
__global__ void avg_pool_kernel(PoolSizes s, const T* x, T* y) {
  for (std::int64_t i = first_index(); i < s.y_count(); i += all_threads()) {
    const Pixel<Index> at(i, s.y_height, s.y_width);
    const T* plane = x + at.plane * s.x_height * s.x_width;
    const Range rows = pixels_of_window(s, 0, at.row, static_cast<int>(s.x_height));
    const Range columns = pixels_of_window(s, 1, at.column, static_cast<int>(s.x_width));
    float sum = 0.0F;
    for (int r = rows.begin; r < rows.end; ++r) {
      for (int c = columns.begin; c < columns.end; ++c) sum += number(plane[r * s.x_width + c]);
    }
    y[i] = stored<T>(sum / window_size(s, at.row, at.column));
  }
}

template <class Index, class T>
__global__ void avg_pool_grad_kernel(PoolSizes s, const T* dy, T* dx) {
  gather<Index>(s, dx, [&](std::int64_t window, int row, int column, int) {
    return number(dy[window]) / window_size(s, row, column);
  });
}

// Division of 32-bit numbers is several times faster.
bool fits_32_bits(const PoolSizes& s) {
  return std::max(s.x_count(), s.y_count()) < std::numeric_limits<std::int32_t>::max();
}

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

}  // namespace

template <class T>
void launch_max_pool(const PoolSizes& s, const T* x, T* y, std::uint8_t* indices,
                     cudaStream_t stream) {
  if (s.y_count() == 0) return;
  launch("max_pool",
         fits_32_bits(s) ? max_pool_kernel<std::uint32_t, T> : max_pool_kernel<std::int64_t, T>,
         grid_for(s.y_count()), dim3(kBlock), stream,
         {reads(x, size(s.x_count())), writes(y, size(s.y_count())),
          writes(indices, size(s.y_count()))},
         s, x, y, indices);
}

template <class T>
void launch_max_pool_grad(const PoolSizes& s, const T* dy, const std::uint8_t* indices, T* dx,
                          cudaStream_t stream) {
  if (s.x_count() == 0) return;
  launch("max_pool_grad",
         fits_32_bits(s) ? max_pool_grad_kernel<std::uint32_t, T>
                         : max_pool_grad_kernel<std::int64_t, T>,
         grid_for(s.x_count()), dim3(kBlock), stream,
         {reads(dy, size(s.y_count())), reads(indices, size(s.y_count())),
          writes(dx, size(s.x_count()))},
         s, dy, indices, dx);
}

template <class T>
void launch_avg_pool(const PoolSizes& s, const T* x, T* y, cudaStream_t stream) {
  if (s.y_count() == 0) return;
  launch("avg_pool",
         fits_32_bits(s) ? avg_pool_kernel<std::uint32_t, T> : avg_pool_kernel<std::int64_t, T>,
         grid_for(s.y_count()), dim3(kBlock), stream,
         {reads(x, size(s.x_count())), writes(y, size(s.y_count()))}, s, x, y);
}

template <class T>
void launch_avg_pool_grad(const PoolSizes& s, const T* dy, T* dx, cudaStream_t stream) {
  if (s.x_count() == 0) return;
  launch("avg_pool_grad",
         fits_32_bits(s) ? avg_pool_grad_kernel<std::uint32_t, T>
                         : avg_pool_grad_kernel<std::int64_t, T>,
         grid_for(s.x_count()), dim3(kBlock), stream,
         {reads(dy, size(s.y_count())), writes(dx, size(s.x_count()))}, s, dy, dx);
}

template void launch_max_pool(const PoolSizes&, const float*, float*, std::uint8_t*, cudaStream_t);
template void launch_max_pool_grad(const PoolSizes&, const float*, const std::uint8_t*, float*,
                                   cudaStream_t);
template void launch_avg_pool(const PoolSizes&, const float*, float*, cudaStream_t);
template void launch_avg_pool_grad(const PoolSizes&, const float*, float*, cudaStream_t);
template void launch_max_pool(const PoolSizes&, const BFloat16*, BFloat16*, std::uint8_t*,
                              cudaStream_t);
template void launch_max_pool_grad(const PoolSizes&, const BFloat16*, const std::uint8_t*,
                                   BFloat16*, cudaStream_t);
template void launch_avg_pool(const PoolSizes&, const BFloat16*, BFloat16*, cudaStream_t);
template void launch_avg_pool_grad(const PoolSizes&, const BFloat16*, BFloat16*, cudaStream_t);

}  // namespace reprise::kernels::cuda
