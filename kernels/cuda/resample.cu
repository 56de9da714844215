#include "kernels/cuda/grid.h"
#include "kernels/cuda/resample.h"
#include "platform/launch.h"

namespace reprise::kernels::cuda {
namespace {

__device__ inline std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t all_threads() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

__global__ void repeat_kernel(std::int64_t repeats, float factor, const float* x, float* y,
                              std::int64_t y_count) {
  for (std::int64_t i = first_index(); i < y_count; i += all_threads()) {
    y[i] = factor * x[i / repeats];
  }
}

__global__ void upsample_kernel(UpsampleSizes s, const float* x, float* y) {
  const std::int64_t width = s.width * s.factor;
  for (std::int64_t i = first_index(); i < s.large_count(); i += all_threads()) {
    const std::int64_t row = i / width / s.factor;  // of all planes' small rows
    y[i] = x[row * s.width + i % width / s.factor];
  }
}

__global__ void upsample_grad_kernel(UpsampleSizes s, const float* dy, float* dx) {
  const std::int64_t width = s.width * s.factor;
  for (std::int64_t i = first_index(); i < s.small_count(); i += all_threads()) {
    const float* from = dy + i / s.width * s.factor * width + i % s.width * s.factor;
    float sum = 0.0F;
    for (std::int64_t r = 0; r < s.factor; ++r) {
      for (std::int64_t c = 0; c < s.factor; ++c) sum += from[r * width + c];
    }
    dx[i] = sum;
  }
}

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

}  // namespace

void launch_repeat(std::int64_t repeats, float factor, const float* x, float* y,
                   std::int64_t y_count, cudaStream_t stream) {
  if (y_count == 0) return;
  launch("repeat", repeat_kernel, grid_for(y_count), dim3(kBlock), stream,
         {reads(x, size(y_count / repeats)), writes(y, size(y_count))}, repeats, factor, x, y,
         y_count);
}

void launch_upsample(const UpsampleSizes& s, const float* x, float* y, cudaStream_t stream) {
  if (s.large_count() == 0) return;
  launch("upsample", upsample_kernel, grid_for(s.large_count()), dim3(kBlock), stream,
         {reads(x, size(s.small_count())), writes(y, size(s.large_count()))}, s, x, y);
}

void launch_upsample_grad(const UpsampleSizes& s, const float* dy, float* dx, cudaStream_t stream) {
  if (s.small_count() == 0) return;
  launch("upsample_grad", upsample_grad_kernel, grid_for(s.small_count()), dim3(kBlock), stream,
         {reads(dy, size(s.large_count())), writes(dx, size(s.small_count()))}, s, dy, dx);
}

}  // namespace reprise::kernels::cuda
