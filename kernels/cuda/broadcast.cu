#include "kernels/cuda/broadcast.h"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/grid.h"
#include "platform/launch.h"

namespace reprise::kernels::cuda {
namespace {

__global__ void broadcast_kernel(BroadcastSizes s, const float* x, float* y) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < s.to_count; i += threads) {
    std::int64_t rest = i;
    std::int64_t from = 0;
    for (int axis = 0; axis < s.axes; ++axis) {
      from += rest % s.size[axis] * s.stride[axis];
      rest /= s.size[axis];
    }
    y[i] = x[from];
  }
}

template <class In, class Out>
__global__ void add_channels_kernel(const float* values, std::int64_t channels, std::int64_t inner,
                                    const In* x, Out* y, std::int64_t count) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += threads) {
    y[i] = stored<Out>(number(x[i]) + values[i / inner % channels]);
  }
}

}  // namespace

void launch_broadcast(const BroadcastSizes& s, const float* x, float* y, cudaStream_t stream) {
  if (s.to_count == 0) return;
  launch("broadcast", broadcast_kernel, grid_for(s.to_count), dim3(kBlock), stream,
         {reads(x, static_cast<std::size_t>(s.from_count)),
          writes(y, static_cast<std::size_t>(s.to_count))},
         s, x, y);
}

template <class In, class Out>
void launch_add_row(const float* row, std::int64_t columns, const In* x, Out* y, std::int64_t count,
                    cudaStream_t stream) {
  launch_add_channels(row, columns, 1, x, y, count, stream);
}

template <class In, class Out>
void launch_add_channels(const float* values, std::int64_t channels, std::int64_t inner,
                         const In* x, Out* y, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  launch("add_channels", add_channels_kernel<In, Out>, grid_for(count), dim3(kBlock), stream,
         {reads(values, static_cast<std::size_t>(channels)),
          reads(x, static_cast<std::size_t>(count)), writes(y, static_cast<std::size_t>(count))},
         values, channels, inner, x, y, count);
}

template void launch_add_row(const float*, std::int64_t, const float*, float*, std::int64_t,
                             cudaStream_t);
template void launch_add_row(const float*, std::int64_t, const float*, BFloat16*, std::int64_t,
                             cudaStream_t);
template void launch_add_channels(const float*, std::int64_t, std::int64_t, const float*, float*,
                                  std::int64_t, cudaStream_t);
template void launch_add_channels(const float*, std::int64_t, std::int64_t, const BFloat16*,
                                  BFloat16*, std::int64_t, cudaStream_t);

}  // namespace reprise::kernels::cuda
