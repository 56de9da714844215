#include "kernels/cuda/element.cuh"
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

template <class T>
__global__ void repeat_kernel(std::int64_t repeats, float factor, const T* x, T* y,
                              std::int64_t y_count) {
  for (std::int64_t i = first_index(); i < y_count; i += all_threads()) {
    y[i] = stored<T>(factor * number(x[i / repeats]));
  }
}

template <class T>
__global__ void upsample_kernel(UpsampleSizes s, const T* x, T* y) {
  const std::int64_t width = s.width * s.factor;
  for (std::int64_t i = first_index(); i < s.large_count(); i += all_threads()) {
    const std::int64_t row = i / width / s.factor;  // of all planes' small rows
    y[i] = x[row * s.width + i % width / s.factor];
  }
}

template <class T>
__global__ void upsample_grad_kernel(UpsampleSizes s, const T* dy, T* dx) {
  const std::int64_t width = s.width * s.factor;
  for (std::int64_t i = first_index(); i < s.small_count(); i += all_threads()) {
    const T* from = dy + i / s.width * s.factor * width + i % s.width * s.factor;
    float sum = 0.0F;
    for (std::int64_t r = 0; r < s.factor; ++r) {
      for (std::int64_t c = 0; c < s.factor; ++c) sum += number(from[r * width + c]);
    }
    dx[i] = stored<T>(sum);
  }
}

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

}  // namespace

template <class T>
void launch_repeat(std::int64_t repeats, float factor, const T* x, T* y, std::int64_t y_count,
                   cudaStream_t stream) {
  if (y_count == 0) return;
  launch("repeat", repeat_kernel<T>, grid_for(y_count), dim3(kBlock), stream,
         {reads(x, size(y_count / repeats)), writes(y, size(y_count))}, repeats, factor, x, y,
         y_count);
}

template <class T>
void launch_upsample(const UpsampleSizes& s, const T* x, T* y, cudaStream_t stream) {
  if (s.large_count() == 0) return;
  launch("upsample", upsample_kernel<T>, grid_for(s.large_count()), dim3(kBlock), stream,
         {reads(x, size(s.small_count())), writes(y, size(s.large_count()))}, s, x, y);
}

template <class T>
void launch_upsample_grad(const UpsampleSizes& s, const T* dy, T* dx, cudaStream_t stream) {
  if (s.small_count() == 0) return;
  launch("upsample_grad", upsample_grad_kernel<T>, grid_for(s.small_count()), dim3(kBlock), stream,
         {reads(dy, size(s.large_count())), writes(dx, size(s.small_count()))}, s, dy, dx);
}

template void launch_repeat(std::int64_t, float, const float*, float*, std::int64_t, cudaStream_t);
template void launch_upsample(const UpsampleSizes&, const float*, float*, cudaStream_t);
template void launch_upsample_grad(const UpsampleSizes&, const float*, float*, cudaStream_t);
template void launch_repeat(std::int64_t, float, const BFloat16*, BFloat16*, std::int64_t,
                            cudaStream_t);
template void launch_upsample(const UpsampleSizes&, const BFloat16*, BFloat16*, cudaStream_t);
template void launch_upsample_grad(const UpsampleSizes&, const BFloat16*, BFloat16*, cudaStream_t);

}  // namespace reprise::kernels::cuda
