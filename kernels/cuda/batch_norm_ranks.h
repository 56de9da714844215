#pragma once

// What batch normalisation over ranks needs beside batch_norm.h. `ranks` is the op's "parts": which
// rank this is, then the items of each.

#include "kernels/cuda/batch_norm.h"

namespace reprise::kernels::cuda {

// From the sums of launch_moment_sums: moments[D,2,C], this rank's row and zeros.
void launch_finish_rank_moments(const NormSizes& s, const SumPlan& plan, const double* partial,
                                float* moments, cudaStream_t stream);
// moments[D,2,C] => mean var sample_var of all items, `values` of an item in a channel.
void launch_combine_moments(const std::int32_t* ranks, int rank_count, std::int64_t channels,
                            std::int64_t values, const float* moments, float* mean, float* var,
                            float* sample_var, cudaStream_t stream);
// From the sums of launch_grad_sums: sums[2,C], of dy and of dy times the normalised x.
void launch_finish_rank_grad_sums(const NormSizes& s, const SumPlan& plan, const double* partial,
                                  const float* var, float* sums, cudaStream_t stream);
// sums[2,C] over all ranks => dgamma, dbeta and the coefficients of launch_normalise_grad.
void launch_rank_grad_coefficients(const NormSizes& s, const float* var, const float* gamma,
                                   const float* sums, float* dgamma, float* dbeta,
                                   float* coefficients, cudaStream_t stream);

}  // namespace reprise::kernels::cuda
