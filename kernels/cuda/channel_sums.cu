#include "kernels/cuda/channel_sums.cuh"
#include "kernels/cuda/grid.h"

namespace reprise::kernels::cuda {
namespace {

struct Plain {
  static constexpr int kValues = 1;
  static constexpr bool kSecond = false;
  __device__ void operator()(float x, float /*y*/, float /*centre*/, double* sums) const {
    sums[0] += static_cast<double>(x);
  }
};

struct SquaredDifference {
  static constexpr int kValues = 1;
  static constexpr bool kSecond = true;
  __device__ void operator()(float x, float y, float /*centre*/, double* sums) const {
    const double difference = static_cast<double>(x) - static_cast<double>(y);
    sums[0] += difference * difference;
  }
};

// y[sum] = acc[sum] + factor * total
template <class T>
__global__ void finish_sums_kernel(PartialSums of, double factor, const double* partial,
                                   const T* acc, T* y) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < of.sums; i += threads) {
    const double total = factor * of.total(partial, 0, i);
    const double sum = acc == nullptr ? total : static_cast<double>(number(acc[i])) + total;
    y[i] = stored<T>(static_cast<float>(sum));
  }
}

template <class T>
void finish(const char* name, const SumPlan& plan, double factor, const double* partial,
            const std::type_identity_t<T>* acc, T* y, cudaStream_t stream) {
  const std::int64_t sums = plan.sizes.sums();
  if (sums == 0) return;
  const auto n = static_cast<std::size_t>(sums);
  launch(name, finish_sums_kernel<T>, grid_for(sums), dim3(kBlock), stream,
         {reads(partial, n * static_cast<std::size_t>(plan.parts)),
          reads(acc, acc == nullptr ? 0 : n), writes(y, n)},
         PartialSums{plan.parts, sums}, factor, partial, acc, y);
}

}  // namespace

SumPlan::SumPlan(const SumSizes& s) : sizes(s), part_terms(s.terms()) {
  constexpr std::int64_t kBlocks = 1024;  // enough to fill a GPU
  constexpr std::int64_t kMostParts = 128;
  std::int64_t blocks = 0;
  std::int64_t least_terms = 0;
  if (s.inner < 8) {
    blocks = (s.sums() + 31) / 32;
    least_terms = 256;
  } else if (s.terms() <= 1024) {
    group = Group::kWarp;
  } else {
    group = Group::kBlock;
    blocks = s.sums();
    least_terms = 4096;
  }
  if (blocks > 0) {
    const std::int64_t wanted = std::min(s.terms() / least_terms, kBlocks / blocks);
    parts = std::clamp<std::int64_t>(wanted, 1, kMostParts);
  }
  part_terms = ((s.terms() + parts - 1) / parts + 3) / 4 * 4;  // parts begin with whole quads
}

template <class In, class Out>
void launch_sums(const SumPlan& plan, float factor, const In* x,
                 const std::type_identity_t<Out>* acc, Out* y, double* scratch,
                 cudaStream_t stream) {
  launch_partial_sums("sums", Plain{}, plan, x, nullptr, nullptr, nullptr, 0, scratch, stream);
  finish("finish_sums", plan, static_cast<double>(factor), scratch, acc, y, stream);
}

void launch_sum_of_squared_differences(const SumPlan& plan, double factor, const float* a,
                                       const float* b, float* y, double* scratch,
                                       cudaStream_t stream) {
  launch_partial_sums("squared_differences", SquaredDifference{}, plan, a, b, nullptr, nullptr, 0,
                      scratch, stream);
  finish("finish_squared_differences", plan, factor, scratch, nullptr, y, stream);
}

template void launch_sums<float, float>(const SumPlan&, float, const float*, const float*, float*,
                                        double*, cudaStream_t);
template void launch_sums<BFloat16, float>(const SumPlan&, float, const BFloat16*, const float*,
                                           float*, double*, cudaStream_t);
template void launch_sums<BFloat16, BFloat16>(const SumPlan&, float, const BFloat16*,
                                              const BFloat16*, BFloat16*, double*, cudaStream_t);

}  // namespace reprise::kernels::cuda
