#include "kernels/cuda/element.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/shape_ops.h"
#include "platform/launch.h"

namespace reprise::kernels::cuda {
namespace {

// Unit: one T, or 16 bytes of them where all sizes are multiples of that.
template <class Unit, class T>
__global__ void copy_rows_kernel(RowCopy c, const T* from, T* to) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       k < c.rows * c.width; k += threads) {
    const std::int64_t row = k / c.width;
    const std::int64_t i = k % c.width;
    reinterpret_cast<Unit*>(to)[row * c.to_stride + i] =
        reinterpret_cast<const Unit*>(from)[row * c.from_stride + i];
  }
}

__global__ void fill_kernel(float value, float* y, std::int64_t count) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += threads) {
    y[i] = value;
  }
}

constexpr std::int64_t kUnitBytes = 16;

bool starts_a_unit(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kUnitBytes == 0;
}

// From the first to the last element that a copy touches.
std::size_t span(const RowCopy& c, std::int64_t stride) {
  return static_cast<std::size_t>((c.rows - 1) * stride + c.width);
}

}  // namespace

template <class T>
void launch_copy_rows(const RowCopy& c, const T* from, T* to, cudaStream_t stream) {
  if (c.rows == 0 || c.width == 0) return;
  constexpr std::int64_t kWidth = kUnitBytes / sizeof(T);
  const Touched read = reads(from, span(c, c.from_stride));
  const Touched written = writes(to, span(c, c.to_stride));
  const bool whole_rows = c.from_stride % kWidth == 0 && c.to_stride % kWidth == 0;
  if ((whole_rows || c.rows == 1) && c.width % kWidth == 0 && starts_a_unit(from) &&
      starts_a_unit(to)) {
    const RowCopy units{c.rows, c.width / kWidth, c.from_stride / kWidth, c.to_stride / kWidth};
    launch("copy_rows", copy_rows_kernel<Piece<T, kWidth>, T>, grid_for(units.rows * units.width),
           dim3(kBlock), stream, {read, written}, units, from, to);
    return;
  }
  launch("copy_rows", copy_rows_kernel<T, T>, grid_for(c.rows * c.width), dim3(kBlock), stream,
         {read, written}, c, from, to);
}

void launch_fill(float value, float* y, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  launch("fill", fill_kernel, grid_for(count), dim3(kBlock), stream,
         {writes(y, static_cast<std::size_t>(count))}, value, y, count);
}

template void launch_copy_rows(const RowCopy&, const std::int32_t*, std::int32_t*, cudaStream_t);
template void launch_copy_rows(const RowCopy&, const BFloat16*, BFloat16*, cudaStream_t);

}  // namespace reprise::kernels::cuda
