#pragma once

// Updates of persistent values on the device, and the norm that clips and guards them. Numbers that
// differ from step to step are read from device memory, where `scalars` lie.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <span>

namespace reprise::kernels::cuda {

// How the norm of all gradients, norm[0], bears on an update. Without both, norm is null.
struct GuardSettings {
  double clip_norm = 0.0;
  bool skip_nonfinite = false;
  friend bool operator==(const GuardSettings&, const GuardSettings&) = default;
};

struct SgdSettings {
  float momentum = 0.0F;
  float weight_decay = 0.0F;
  bool nesterov = false;
  GuardSettings guard;
  friend bool operator==(const SgdSettings&, const SgdSettings&) = default;
};
struct SgdArrays {
  const float *p, *g, *m;
  float *p_out, *m_out;  // `m` and `m_out` are null without momentum, in all arrays of a launch
  std::int64_t count;
};
// All arrays in one launch; they lie in one allocation. scalars[0]: the learning rate.
void launch_sgd(const SgdSettings& settings, const double* scalars, const float* norm,
                std::span<const SgdArrays> arrays, cudaStream_t stream);

struct AdamSettings {
  float beta1, beta2;
  float rest1, rest2;  // 1 - beta, taken in f64
  float epsilon;
  float coupled_decay;  // added to the gradient
  GuardSettings guard;
  friend bool operator==(const AdamSettings&, const AdamSettings&) = default;
};
// Three scalars, wherever they lie: the rate with the correction of the first moment,
// 1 / sqrt(1 - beta2^t), and 1 - rate * decoupled weight decay.
struct AdamScalars {
  std::int64_t rate, root_correction, shrink;
  friend bool operator==(const AdamScalars&, const AdamScalars&) = default;
};
struct AdamArrays {
  const float *p, *g, *m, *v;
  float *p_out, *m_out, *v_out;
  std::int64_t count;
};
// As launch_sgd().
void launch_adam(const AdamSettings& settings, const double* scalars, const AdamScalars& at,
                 const float* norm, std::span<const AdamArrays> arrays, cudaStream_t stream);

// variable' = x, or variable where norm[0] is not finite. `norm` is not null.
void launch_guarded_assign(const float* norm, const std::int32_t* variable, const std::int32_t* x,
                           std::int32_t* out, std::int64_t words, cudaStream_t stream);

// The root of the sum of all squares: any number of calls of the first, whose parts lie side by
// side in `partial`, then one of the second.
inline constexpr int kNormArrays = 8;
struct NormArrays {
  std::array<const float*, kNormArrays> x;
  std::array<std::int64_t, kNormArrays> count;  // 0 where there is none
};
[[nodiscard]] std::int64_t norm_parts(std::int64_t count);  // of one array
void launch_sums_of_squares(const NormArrays& arrays, double* partial, cudaStream_t stream);
void launch_root_of_sum(const double* partial, std::int64_t parts, float* norm,
                        cudaStream_t stream);

}  // namespace reprise::kernels::cuda
