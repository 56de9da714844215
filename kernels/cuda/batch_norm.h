#pragma once

// Batch normalisation on the device. All statistics are per channel, arrays of C, and floats; T is
// what images are stored in (element.h).

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

#include "kernels/cuda/channel_sums.h"
#include "kernels/cuda/element.h"

namespace reprise::kernels::cuda {

// x[N,C,...] as x[1, N, C, inner]. Over ranks (batch_norm_ranks.h) only the first items of the
// batch count and the others are padding: `ranks` is the op's "parts" for that many ranks; null:
// all count.
struct NormSizes {
  SumSizes x;
  double epsilon = 1e-5;
  const std::int32_t* ranks = nullptr;
  int rank_count = 0;
};

// Floats of workspace for a channel, beside the partial sums of two values.
inline constexpr int kNormCoefficients = 3;

template <class T>
void launch_batch_norm(const NormSizes& s, const SumPlan& plan, const T* x, const float* gamma,
                       const float* beta, T* y, float* mean, float* var, double* partial,
                       float* coefficients, cudaStream_t stream);
template <class T>
void launch_batch_norm_grad(const NormSizes& s, const SumPlan& plan, const T* x, const T* dy,
                            const float* mean, const float* var, const float* gamma, T* dx,
                            float* dgamma, float* dbeta, double* partial, float* coefficients,
                            cudaStream_t stream);
// y = (x - mean) gamma / deviation + beta; zeros in padding.
template <class T>
void launch_normalise(const NormSizes& s, const T* x, const float* gamma, const float* beta,
                      const float* mean, const float* var, T* y, float* coefficients,
                      cudaStream_t stream);

// One batch taken up: running' = (1 - rate) running + rate batch, in place. Nothing where norm[0]
// is not finite; `norm` may be null.
struct RunningUpdate {
  double rate = 0.1;
  double var_rate = 0.1;  // with the correction to the sample's variance
};
void launch_batch_norm_update(const RunningUpdate& update, const float* norm, const float* mean,
                              const float* var, float* running_mean, float* running_var,
                              std::int64_t channels, cudaStream_t stream);

// The parts of the above that batch norm over ranks has as nodes of its own.

// sums[2][C]: of x and of x * x, in `partial`.
template <class T>
void launch_moment_sums(const NormSizes& s, const SumPlan& plan, const T* x, double* partial,
                        cudaStream_t stream);
// sums[2][C]: of dy and of dy * (x - mean), in `partial`.
template <class T>
void launch_grad_sums(const NormSizes& s, const SumPlan& plan, const T* x, const T* dy,
                      const float* mean, double* partial, cudaStream_t stream);
// dx = scale (dy - shift - (x - mean) slope) with coefficients[3][C] = scale, shift, slope; zeros
// in padding. dx may be dy.
template <class T>
void launch_normalise_grad(const NormSizes& s, const T* x, const T* dy, const float* mean,
                           const float* coefficients, T* dx, cudaStream_t stream);

}  // namespace reprise::kernels::cuda
