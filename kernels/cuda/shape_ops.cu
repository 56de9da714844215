#include "kernels/cuda/grid.h"
#include "kernels/cuda/shape_ops.h"
#include "platform/launch.h"

namespace reprise::kernels::cuda {
namespace {

// T: one element, or four where all sizes are multiples of four.
template <class T>
__global__ void copy_rows_kernel(RowCopy c, const std::int32_t* from, std::int32_t* to) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       k < c.rows * c.width; k += threads) {
    const std::int64_t row = k / c.width;
    const std::int64_t i = k % c.width;
    reinterpret_cast<T*>(to)[row * c.to_stride + i] =
        reinterpret_cast<const T*>(from)[row * c.from_stride + i];
  }
}

__global__ void fill_kernel(float value, float* y, std::int64_t count) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += threads) {
    y[i] = value;
  }
}

bool starts_a_quad(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % sizeof(Quad<std::int32_t>) == 0;
}

// From the first to the last element that a copy touches.
std::size_t span(const RowCopy& c, std::int64_t stride) {
  return static_cast<std::size_t>((c.rows - 1) * stride + c.width);
}

}  // namespace

void launch_copy_rows(const RowCopy& c, const std::int32_t* from, std::int32_t* to,
                      cudaStream_t stream) {
  if (c.rows == 0 || c.width == 0) return;
  const Touched read = reads(from, span(c, c.from_stride));
  const Touched written = writes(to, span(c, c.to_stride));
  const bool whole_rows = c.from_stride % 4 == 0 && c.to_stride % 4 == 0;
  if ((whole_rows || c.rows == 1) && c.width % 4 == 0 && starts_a_quad(from) && starts_a_quad(to)) {
    const RowCopy quads{c.rows, c.width / 4, c.from_stride / 4, c.to_stride / 4};
    launch("copy_rows", copy_rows_kernel<Quad<std::int32_t>>, grid_for(quads.rows * quads.width),
           dim3(kBlock), stream, {read, written}, quads, from, to);
    return;
  }
  launch("copy_rows", copy_rows_kernel<std::int32_t>, grid_for(c.rows * c.width), dim3(kBlock),
         stream, {read, written}, c, from, to);
}

void launch_fill(float value, float* y, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  launch("fill", fill_kernel, grid_for(count), dim3(kBlock), stream,
         {writes(y, static_cast<std::size_t>(count))}, value, y, count);
}

}  // namespace reprise::kernels::cuda
