// One call of Philox4x32-10 for each four elements (graph/random.h says which counter and key), so
// that the mask is that of every other backend.

#include "kernels/cuda/dropout.h"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/grid.h"
#include "platform/launch.h"

namespace reprise::kernels::cuda {
namespace {

struct Words {
  std::uint32_t v[4];
};

__device__ inline Words philox(Words c, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * c.v[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * c.v[2];
    c = {{static_cast<std::uint32_t>(product1 >> 32) ^ c.v[1] ^ key0,
          static_cast<std::uint32_t>(product1),
          static_cast<std::uint32_t>(product0 >> 32) ^ c.v[3] ^ key1,
          static_cast<std::uint32_t>(product0)}};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return c;
}

template <class T>
__global__ void dropout_kernel(Dropping d, const StepValues* values, const T* x, T* y,
                               std::int64_t count) {
  const std::uint64_t seed = values->seed;
  const std::uint64_t step = values->step;
  const std::uint32_t word3 = d.stream ^ (static_cast<std::uint32_t>(step >> 32) << 16);
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t block = first; 4 * block < count; block += threads) {
    const auto counter = static_cast<std::uint64_t>(block);
    const Words bits =
        philox({{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                 static_cast<std::uint32_t>(step), word3}},
               static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
    if (4 * block + 4 <= count) {
      auto quad = reinterpret_cast<const Piece<T, 4>*>(x)[block];
      for (int k = 0; k < 4; ++k) {
        quad.v[k] = stored<T>(bits.v[k] >= d.threshold ? number(quad.v[k]) * d.scale : 0.0F);
      }
      reinterpret_cast<Piece<T, 4>*>(y)[block] = quad;
    } else {
      for (int k = 0; 4 * block + k < count; ++k) {
        const std::int64_t i = 4 * block + k;
        y[i] = stored<T>(bits.v[k] >= d.threshold ? number(x[i]) * d.scale : 0.0F);
      }
    }
  }
}

}  // namespace

template <class T>
void launch_dropout(const Dropping& d, const StepValues* step, const T* x, T* y, std::int64_t count,
                    cudaStream_t stream) {
  if (count == 0) return;
  const auto n = static_cast<std::size_t>(count);
  launch("dropout", dropout_kernel<T>, grid_for((count + 3) / 4), dim3(kBlock), stream,
         {reads(&step->seed, 2), reads(x, n), writes(y, n)}, d, step, x, y, count);
}

template void launch_dropout(const Dropping&, const StepValues*, const float*, float*, std::int64_t,
                             cudaStream_t);
template void launch_dropout(const Dropping&, const StepValues*, const BFloat16*, BFloat16*,
                             std::int64_t, cudaStream_t);

}  // namespace reprise::kernels::cuda
