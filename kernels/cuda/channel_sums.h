#pragma once

// Sums over some axes of an array, in an order that depends on its sizes alone.

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <type_traits>

namespace reprise::kernels::cuda {

// x[batch, outer, channels, inner]: one sum for each (batch, channel), over outer and inner.
struct SumSizes {
  std::int64_t batch = 1, outer = 1, channels = 1, inner = 1;

  [[nodiscard]] __host__ __device__ std::int64_t sums() const { return batch * channels; }
  [[nodiscard]] __host__ __device__ std::int64_t terms() const { return outer * inner; }
};

// How the terms of the sums are dealt out to threads. Each part of a sum is added up by itself, in
// double precision; the parts are added in order by a second kernel.
struct SumPlan {
  enum class Group { kColumn, kWarp, kBlock };  // the threads that make one part together

  SumSizes sizes;
  Group group = Group::kColumn;
  std::int64_t parts = 1;
  std::int64_t part_terms = 0;

  explicit SumPlan(const SumSizes& s);
  // Of the partial sums, where each term has `values` (dy, dy * x, ...).
  [[nodiscard]] std::size_t scratch_bytes(int values = 1) const {
    return static_cast<std::size_t>(values * parts * sizes.sums()) * sizeof(double);
  }
};

// y[sum] = acc[sum] + factor * sum of x. `acc` may be null or y; `scratch` holds scratch_bytes().
// In and Out: float twice, BFloat16 twice, or BFloat16 to float.
template <class In, class Out>
void launch_sums(const SumPlan& plan, float factor, const In* x,
                 const std::type_identity_t<Out>* acc, Out* y, double* scratch,
                 cudaStream_t stream);
// y[0] = factor * sum of (a - b)^2 over the `terms` of the one sum.
void launch_sum_of_squared_differences(const SumPlan& plan, double factor, const float* a,
                                       const float* b, float* y, double* scratch,
                                       cudaStream_t stream);

}  // namespace reprise::kernels::cuda
