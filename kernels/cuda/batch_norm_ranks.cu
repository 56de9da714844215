#include <cmath>
#include <limits>

#include "kernels/cuda/batch_norm_ranks.h"
#include "kernels/cuda/channel_sums.cuh"
#include "kernels/cuda/grid.h"

namespace reprise::kernels::cuda {
namespace {

__device__ inline std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ inline double inverse_deviation(float variance, double epsilon) {
  return 1.0 / sqrt(static_cast<double>(variance) + epsilon);
}

// Of all ranks together; one that says less than none has none.
__device__ inline std::int64_t all_items(const std::int32_t* ranks, int rank_count) {
  std::int64_t all = 0;
  for (int r = 0; r < rank_count; ++r) all += ranks[1 + r] > 0 ? ranks[1 + r] : 0;
  return all;
}

// A thread for each (rank, channel).
__global__ void finish_rank_moments_kernel(PartialSums of, SumSizes s, const std::int32_t* ranks,
                                           int rank_count, const double* partial, float* moments) {
  const std::int64_t i = first_index();
  if (i >= rank_count * s.channels) return;
  const std::int64_t rank = i / s.channels;
  const std::int64_t c = i % s.channels;
  float mean = 0.0F;
  float var = 0.0F;
  const std::int64_t terms = counted_terms(s, ranks, rank_count);
  if (rank == ranks[0] && terms > 0) {
    const auto count = static_cast<double>(terms);
    const double m = of.total(partial, 0, c) / count;
    const double v = of.total(partial, 1, c) / count - m * m;
    mean = static_cast<float>(m);
    var = static_cast<float>(v < 0.0 ? 0.0 : v);
  }
  moments[2 * rank * s.channels + c] = mean;
  moments[(2 * rank + 1) * s.channels + c] = var;
}

// Pairs of moments joined one after the other (Chan, Golub and LeVeque 1979).
__global__ void combine_moments_kernel(const std::int32_t* ranks, int rank_count,
                                       std::int64_t channels, std::int64_t values,
                                       const float* moments, float* mean_out, float* var_out,
                                       float* sample_var_out) {
  const std::int64_t c = first_index();
  if (c >= channels) return;
  double n = 0.0;  // of the ranks so far, in items
  double mean = 0.0;
  double squares = 0.0;
  for (int r = 0; r < rank_count; ++r) {
    if (ranks[1 + r] <= 0) continue;
    const double more = ranks[1 + r];
    const double delta = static_cast<double>(moments[2 * r * channels + c]) - mean;
    mean += delta * more / (n + more);
    squares += more * static_cast<double>(moments[(2 * r + 1) * channels + c]) +
               delta * delta * n * more / (n + more);
    n += more;
  }
  const double count = n * static_cast<double>(values);
  const double var = squares / n;
  mean_out[c] = static_cast<float>(mean);
  var_out[c] = static_cast<float>(var);
  sample_var_out[c] = static_cast<float>(var * count / (count - 1.0));
}

__global__ void finish_rank_grad_sums_kernel(PartialSums of, double epsilon, const double* partial,
                                             const float* var, float* sums) {
  const std::int64_t c = first_index();
  if (c >= of.sums) return;
  sums[c] = static_cast<float>(of.total(partial, 0, c));
  sums[of.sums + c] =
      static_cast<float>(of.total(partial, 1, c) * inverse_deviation(var[c], epsilon));
}

__global__ void rank_grad_coefficients_kernel(SumSizes s, double epsilon, const std::int32_t* ranks,
                                              int rank_count, const float* var, const float* gamma,
                                              const float* sums, float* dgamma, float* dbeta,
                                              float* coefficients) {
  const std::int64_t c = first_index();
  if (c >= s.channels) return;
  const auto count = static_cast<double>(all_items(ranks, rank_count) * s.inner);
  const double inverse = inverse_deviation(var[c], epsilon);
  const float of_dy = sums[c];
  const float of_product = sums[s.channels + c];
  dgamma[c] = of_product;
  dbeta[c] = of_dy;
  coefficients[c] = static_cast<float>(static_cast<double>(gamma[c]) * inverse);
  coefficients[s.channels + c] = static_cast<float>(static_cast<double>(of_dy) / count);
  coefficients[2 * s.channels + c] =
      static_cast<float>(static_cast<double>(of_product) * inverse / count);
}

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

dim3 grid_over(std::int64_t threads) {
  return grid_for(threads, std::numeric_limits<std::int32_t>::max());
}

}  // namespace

void launch_finish_rank_moments(const NormSizes& s, const SumPlan& plan, const double* partial,
                                float* moments, cudaStream_t stream) {
  const std::int64_t channels = s.x.channels;
  const std::size_t c = size(channels);
  launch("rank_moments", finish_rank_moments_kernel, grid_over(s.rank_count * channels),
         dim3(kBlock), stream,
         {reads(s.ranks, size(s.rank_count) + 1), reads(partial, 2 * c * size(plan.parts)),
          writes(moments, 2 * c * size(s.rank_count))},
         PartialSums{plan.parts, channels}, s.x, s.ranks, s.rank_count, partial, moments);
}

void launch_combine_moments(const std::int32_t* ranks, int rank_count, std::int64_t channels,
                            std::int64_t values, const float* moments, float* mean, float* var,
                            float* sample_var, cudaStream_t stream) {
  const std::size_t c = size(channels);
  launch("combine_moments", combine_moments_kernel, grid_over(channels), dim3(kBlock), stream,
         {reads(ranks, size(rank_count) + 1), reads(moments, 2 * c * size(rank_count)),
          writes(mean, c), writes(var, c), writes(sample_var, c)},
         ranks, rank_count, channels, values, moments, mean, var, sample_var);
}

void launch_finish_rank_grad_sums(const NormSizes& s, const SumPlan& plan, const double* partial,
                                  const float* var, float* sums, cudaStream_t stream) {
  const std::int64_t channels = s.x.channels;
  const std::size_t c = size(channels);
  launch("rank_grad_sums", finish_rank_grad_sums_kernel, grid_over(channels), dim3(kBlock), stream,
         {reads(partial, 2 * c * size(plan.parts)), reads(var, c), writes(sums, 2 * c)},
         PartialSums{plan.parts, channels}, s.epsilon, partial, var, sums);
}

void launch_rank_grad_coefficients(const NormSizes& s, const float* var, const float* gamma,
                                   const float* sums, float* dgamma, float* dbeta,
                                   float* coefficients, cudaStream_t stream) {
  const std::size_t c = size(s.x.channels);
  launch(
      "rank_grad_coefficients", rank_grad_coefficients_kernel, grid_over(s.x.channels),
      dim3(kBlock), stream,
      {reads(s.ranks, size(s.rank_count) + 1), reads(var, c), reads(gamma, c), reads(sums, 2 * c),
       writes(dgamma, c), writes(dbeta, c), writes(coefficients, kNormCoefficients * c)},
      s.x, s.epsilon, s.ranks, s.rank_count, var, gamma, sums, dgamma, dbeta, coefficients);
}

}  // namespace reprise::kernels::cuda
