// Two sums a channel in double precision, their coefficients, then a map. Sums of squares need no
// second pass over x: a double holds them exactly enough for any mean that f32 images have.

#include <cmath>

#include "kernels/cuda/batch_norm.h"
#include "kernels/cuda/channel_map.cuh"
#include "kernels/cuda/element.cuh"

namespace reprise::kernels::cuda {
namespace {

struct Moments {
  static constexpr int kValues = 2;
  static constexpr bool kSecond = false;
  __device__ void operator()(float x, float /*y*/, float /*centre*/, double* sums) const {
    const auto value = static_cast<double>(x);
    sums[0] += value;
    sums[1] += value * value;
  }
};

struct GradSums {
  static constexpr int kValues = 2;
  static constexpr bool kSecond = true;
  __device__ void operator()(float x, float dy, float centre, double* sums) const {
    sums[0] += static_cast<double>(dy);
    sums[1] += static_cast<double>(dy) * static_cast<double>(x - centre);
  }
};

__device__ inline std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ inline double inverse_deviation(float variance, double epsilon) {
  return 1.0 / sqrt(static_cast<double>(variance) + epsilon);
}

__global__ void finish_moments_kernel(PartialSums of, double count, double epsilon,
                                      const double* partial, const float* gamma, float* mean,
                                      float* var, float* scale) {
  const std::int64_t c = first_index();
  if (c >= of.sums) return;
  const double m = of.total(partial, 0, c) / count;
  const double v = of.total(partial, 1, c) / count - m * m;
  const auto variance = static_cast<float>(v > 0.0 ? v : v < 0.0 ? 0.0 : v);  // NaN stays
  mean[c] = static_cast<float>(m);
  var[c] = variance;
  scale[c] =
      static_cast<float>(static_cast<double>(gamma[c]) * inverse_deviation(variance, epsilon));
}

__global__ void scales_kernel(std::int64_t channels, double epsilon, const float* gamma,
                              const float* var, float* scale) {
  const std::int64_t c = first_index();
  if (c >= channels) return;
  scale[c] = static_cast<float>(static_cast<double>(gamma[c]) * inverse_deviation(var[c], epsilon));
}

__global__ void finish_grad_kernel(PartialSums of, double count, double epsilon,
                                   const double* partial, const float* var, const float* gamma,
                                   float* dgamma, float* dbeta, float* coefficients) {
  const std::int64_t c = first_index();
  if (c >= of.sums) return;
  const double inverse = inverse_deviation(var[c], epsilon);
  const double of_dy = of.total(partial, 0, c);
  const double of_product = of.total(partial, 1, c) * inverse;
  dgamma[c] = static_cast<float>(of_product);
  dbeta[c] = static_cast<float>(of_dy);
  coefficients[c] = static_cast<float>(static_cast<double>(gamma[c]) * inverse);
  coefficients[of.sums + c] = static_cast<float>(of_dy / count);
  coefficients[2 * of.sums + c] = static_cast<float>(of_product * inverse / count);
}

template <class Index, int kWidth, class T>
__global__ void normalise_kernel(SumSizes s, const std::int32_t* ranks, int rank_count, const T* x,
                                 const float* mean, const float* scale, const float* beta, T* y) {
  for_each_in_channels<Index>(s, kWidth, counted_elements(s, ranks, rank_count),
                              [&](std::int64_t at, std::int64_t c, bool counts) {
                                auto piece = *reinterpret_cast<const Piece<T, kWidth>*>(x + at);
                                for (int k = 0; k < kWidth; ++k) {
                                  const float normalised =
                                      (number(piece.v[k]) - mean[c]) * scale[c] + beta[c];
                                  piece.v[k] = stored<T>(counts ? normalised : 0.0F);
                                }
                                *reinterpret_cast<Piece<T, kWidth>*>(y + at) = piece;
                              });
}

template <class Index, int kWidth, class T>
__global__ void normalise_grad_kernel(SumSizes s, const std::int32_t* ranks, int rank_count,
                                      const T* x, const T* dy, const float* mean,
                                      const float* coefficients, T* dx) {
  for_each_in_channels<Index>(
      s, kWidth, counted_elements(s, ranks, rank_count),
      [&](std::int64_t at, std::int64_t c, bool counts) {
        const float scale = coefficients[c];
        const float shift = coefficients[s.channels + c];
        const float slope = coefficients[2 * s.channels + c];
        const auto of_x = *reinterpret_cast<const Piece<T, kWidth>*>(x + at);
        auto piece = *reinterpret_cast<const Piece<T, kWidth>*>(dy + at);
        for (int k = 0; k < kWidth; ++k) {
          const float centred = number(of_x.v[k]) - mean[c];
          const float gradient = scale * (number(piece.v[k]) - shift - centred * slope);
          piece.v[k] = stored<T>(counts ? gradient : 0.0F);
        }
        *reinterpret_cast<Piece<T, kWidth>*>(dx + at) = piece;
      });
}

__global__ void batch_norm_update_kernel(RunningUpdate u, const float* norm, const float* mean,
                                         const float* var, float* running_mean, float* running_var,
                                         std::int64_t channels) {
  const std::int64_t c = first_index();
  if (c >= channels) return;
  if (norm != nullptr && !(fabsf(*norm) <= 3.402823466e+38F)) return;  // not finite
  const double kept = 1.0 - u.rate;
  running_mean[c] = static_cast<float>(kept * static_cast<double>(running_mean[c]) +
                                       u.rate * static_cast<double>(mean[c]));
  running_var[c] = static_cast<float>(kept * static_cast<double>(running_var[c]) +
                                      u.var_rate * static_cast<double>(var[c]));
}

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

dim3 channel_grid(std::int64_t channels) {
  return grid_for(channels, std::numeric_limits<std::int32_t>::max());
}

Touched reads_ranks(const NormSizes& s) {
  return reads(s.ranks, s.ranks == nullptr ? 0 : size(s.rank_count) + 1);
}

// Of values in a channel; nothing is divided by nothing.
double count_of(const SumSizes& s) {
  return static_cast<double>(std::max<std::int64_t>(s.terms(), 1));
}

template <class T>
void map_normalised(const NormSizes& s, const T* x, const float* mean, const float* scale,
                    const float* beta, T* y, cudaStream_t stream) {
  const std::int64_t count = s.x.sums() * s.x.terms();
  if (count == 0) return;
  const auto start = [&](auto kernel, int width) {
    const std::size_t c = size(s.x.channels);
    launch("normalise", kernel, grid_for(count / width), dim3(kBlock), stream,
           {reads_ranks(s), reads(x, size(count)), reads(mean, c), reads(scale, c), reads(beta, c),
            writes(y, size(count))},
           s.x, s.ranks, s.rank_count, x, mean, scale, beta, y);
  };
  if (!fits_32_bits(s.x)) {
    start(normalise_kernel<std::int64_t, 1, T>, 1);
  } else if (fits_quads(s.x)) {
    start(normalise_kernel<std::uint32_t, 4, T>, 4);
  } else {
    start(normalise_kernel<std::uint32_t, 1, T>, 1);
  }
}

}  // namespace

template <class T>
void launch_moment_sums(const NormSizes& s, const SumPlan& plan, const T* x, double* partial,
                        cudaStream_t stream) {
  launch_partial_sums("moments", Moments{}, plan, x, nullptr, nullptr, s.ranks, s.rank_count,
                      partial, stream);
}

template <class T>
void launch_grad_sums(const NormSizes& s, const SumPlan& plan, const T* x, const T* dy,
                      const float* mean, double* partial, cudaStream_t stream) {
  launch_partial_sums("norm_grad_sums", GradSums{}, plan, x, dy, mean, s.ranks, s.rank_count,
                      partial, stream);
}

template <class T>
void launch_batch_norm(const NormSizes& s, const SumPlan& plan, const T* x, const float* gamma,
                       const float* beta, T* y, float* mean, float* var, double* partial,
                       float* coefficients, cudaStream_t stream) {
  launch_moment_sums(s, plan, x, partial, stream);
  const std::int64_t channels = s.x.channels;
  const std::size_t c = size(channels);
  launch("finish_moments", finish_moments_kernel, channel_grid(channels), dim3(kBlock), stream,
         {reads(partial, 2 * c * size(plan.parts)), reads(gamma, c), writes(mean, c),
          writes(var, c), writes(coefficients, c)},
         PartialSums{plan.parts, channels}, count_of(s.x), s.epsilon, partial, gamma, mean, var,
         coefficients);
  map_normalised(s, x, mean, coefficients, beta, y, stream);
}

template <class T>
void launch_normalise(const NormSizes& s, const T* x, const float* gamma, const float* beta,
                      const float* mean, const float* var, T* y, float* coefficients,
                      cudaStream_t stream) {
  const std::int64_t channels = s.x.channels;
  const std::size_t c = size(channels);
  launch("norm_scales", scales_kernel, channel_grid(channels), dim3(kBlock), stream,
         {reads(gamma, c), reads(var, c), writes(coefficients, c)}, channels, s.epsilon, gamma, var,
         coefficients);
  map_normalised(s, x, mean, coefficients, beta, y, stream);
}

template <class T>
void launch_batch_norm_grad(const NormSizes& s, const SumPlan& plan, const T* x, const T* dy,
                            const float* mean, const float* var, const float* gamma, T* dx,
                            float* dgamma, float* dbeta, double* partial, float* coefficients,
                            cudaStream_t stream) {
  launch_grad_sums(s, plan, x, dy, mean, partial, stream);
  const std::int64_t channels = s.x.channels;
  const std::size_t c = size(channels);
  launch("finish_norm_grad", finish_grad_kernel, channel_grid(channels), dim3(kBlock), stream,
         {reads(partial, 2 * c * size(plan.parts)), reads(var, c), reads(gamma, c),
          writes(dgamma, c), writes(dbeta, c), writes(coefficients, kNormCoefficients * c)},
         PartialSums{plan.parts, channels}, count_of(s.x), s.epsilon, partial, var, gamma, dgamma,
         dbeta, coefficients);
  launch_normalise_grad(s, x, dy, mean, coefficients, dx, stream);
}

template <class T>
void launch_normalise_grad(const NormSizes& s, const T* x, const T* dy, const float* mean,
                           const float* coefficients, T* dx, cudaStream_t stream) {
  const std::int64_t count = s.x.sums() * s.x.terms();
  if (count == 0) return;
  const auto start = [&](auto kernel, int width) {
    const std::size_t c = size(s.x.channels);
    launch("normalise_grad", kernel, grid_for(count / width), dim3(kBlock), stream,
           {reads_ranks(s), reads(x, size(count)), reads(dy, size(count)), reads(mean, c),
            reads(coefficients, kNormCoefficients * c), writes(dx, size(count))},
           s.x, s.ranks, s.rank_count, x, dy, mean, coefficients, dx);
  };
  if (!fits_32_bits(s.x)) {
    start(normalise_grad_kernel<std::int64_t, 1, T>, 1);
  } else if (fits_quads(s.x)) {
    start(normalise_grad_kernel<std::uint32_t, 4, T>, 4);
  } else {
    start(normalise_grad_kernel<std::uint32_t, 1, T>, 1);
  }
}

void launch_batch_norm_update(const RunningUpdate& update, const float* norm, const float* mean,
                              const float* var, float* running_mean, float* running_var,
                              std::int64_t channels, cudaStream_t stream) {
  const std::size_t c = size(channels);
  if (c == 0) return;
  launch(
      "batch_norm_update", batch_norm_update_kernel, channel_grid(channels), dim3(kBlock), stream,
      {reads(norm, norm == nullptr ? 0 : 1), reads(mean, c), reads(var, c), reads(running_mean, c),
       reads(running_var, c), writes(running_mean, c), writes(running_var, c)},
      update, norm, mean, var, running_mean, running_var, channels);
}

// Of everything above for values stored as T.
#define REPRISE_NORM_OF(T)                                                                   \
  template void launch_moment_sums(const NormSizes&, const SumPlan&, const T*, double*,      \
                                   cudaStream_t);                                            \
  template void launch_grad_sums(const NormSizes&, const SumPlan&, const T*, const T*,       \
                                 const float*, double*, cudaStream_t);                       \
  template void launch_batch_norm(const NormSizes&, const SumPlan&, const T*, const float*,  \
                                  const float*, T*, float*, float*, double*, float*,         \
                                  cudaStream_t);                                             \
  template void launch_normalise(const NormSizes&, const T*, const float*, const float*,     \
                                 const float*, const float*, T*, float*, cudaStream_t);      \
  template void launch_batch_norm_grad(const NormSizes&, const SumPlan&, const T*, const T*, \
                                       const float*, const float*, const float*, T*, float*, \
                                       float*, double*, float*, cudaStream_t);               \
  template void launch_normalise_grad(const NormSizes&, const T*, const T*, const float*,    \
                                      const float*, T*, cudaStream_t)
REPRISE_NORM_OF(float);
REPRISE_NORM_OF(BFloat16);
#undef REPRISE_NORM_OF

}  // namespace reprise::kernels::cuda
