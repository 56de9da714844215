// Layer normalisation over the last axis. D features, M rows; mean and population variance per row.

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"

namespace reprise::kernels::cpu {
namespace {

struct Sizes {
  std::int64_t rows;      // M
  std::int64_t features;  // D
  double epsilon;

  [[nodiscard]] double inverse_deviation(float variance) const {
    return 1.0 / std::sqrt(static_cast<double>(variance) + epsilon);
  }
};

Sizes sizes_of(const Booking& b) {
  const graph::Shape& x = b.input(0).shape;
  return {graph::element_count(x) / x.back(), x.back(),
          b.attributes<graph::NormAttributes>().epsilon};
}

constexpr std::size_t kLanes = 8;
using Lanes = std::array<double, kLanes>;

double total(const Lanes& lanes) {
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

template <class T>
[[gnu::always_inline]] inline double sum_of_in(const T* x, std::int64_t count) {
  Lanes lanes{};
  std::int64_t i = 0;
  for (; i + static_cast<std::int64_t>(kLanes) <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += load(x[i + static_cast<std::int64_t>(lane)]);
    }
  }
  for (; i < count; ++i) lanes[0] += load(x[i]);
  return total(lanes);
}
REPRISE_VECTOR double sum_of(const float* x, std::int64_t count) {
  return sum_of_in(x, count);
}
REPRISE_VECTOR double sum_of(const Bf16* x, std::int64_t count) {
  return sum_of_in(x, count);
}

template <class T>
[[gnu::always_inline]] inline double squares_around_in(const T* x, std::int64_t count,
                                                       double mean) {
  Lanes lanes{};
  std::int64_t i = 0;
  for (; i + static_cast<std::int64_t>(kLanes) <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double d = load(x[i + static_cast<std::int64_t>(lane)]) - mean;
      lanes[lane] += d * d;
    }
  }
  for (; i < count; ++i) lanes[0] += (load(x[i]) - mean) * (load(x[i]) - mean);
  return total(lanes);
}
REPRISE_VECTOR double squares_around(const float* x, std::int64_t count, double mean) {
  return squares_around_in(x, count, mean);
}
REPRISE_VECTOR double squares_around(const Bf16* x, std::int64_t count, double mean) {
  return squares_around_in(x, count, mean);
}

// y = gamma * (x - mean) * inverse + beta; y may be x.
template <class T>
[[gnu::always_inline]] inline void normalize_in(const T* x, const float* gamma, const float* beta,
                                                float mean, float inverse, T* y,
                                                std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = stored<T>(gamma[i] * ((load(x[i]) - mean) * inverse) + beta[i]);
}
REPRISE_VECTOR void normalize(const float* x, const float* gamma, const float* beta, float mean,
                              float inverse, float* y, std::int64_t count) {
  normalize_in(x, gamma, beta, mean, inverse, y, count);
}
REPRISE_VECTOR void normalize(const Bf16* x, const float* gamma, const float* beta, float mean,
                              float inverse, Bf16* y, std::int64_t count) {
  normalize_in(x, gamma, beta, mean, inverse, y, count);
}

// dgamma += dy * xhat and dbeta += dy, for one row.
template <class T>
[[gnu::always_inline]] inline void add_vector_grads_in(const T* x, const T* dy, float mean,
                                                       float inverse, double* dgamma, double* dbeta,
                                                       std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double g = load(dy[i]);
    dgamma[i] += g * ((load(x[i]) - mean) * inverse);
    dbeta[i] += g;
  }
}
REPRISE_VECTOR void add_vector_grads(const float* x, const float* dy, float mean, float inverse,
                                     double* dgamma, double* dbeta, std::int64_t count) {
  add_vector_grads_in(x, dy, mean, inverse, dgamma, dbeta, count);
}
REPRISE_VECTOR void add_vector_grads(const Bf16* x, const Bf16* dy, float mean, float inverse,
                                     double* dgamma, double* dbeta, std::int64_t count) {
  add_vector_grads_in(x, dy, mean, inverse, dgamma, dbeta, count);
}

// The sums of gamma * dy and of gamma * dy * xhat over one row.
template <class T>
[[gnu::always_inline]] inline void row_sums_in(const T* x, const T* dy, const float* gamma,
                                               float mean, float inverse, std::int64_t count,
                                               double* sum, double* sum_xhat) {
  Lanes plain{};
  Lanes weighted{};
  std::int64_t i = 0;
  for (; i + static_cast<std::int64_t>(kLanes) <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::int64_t at = i + static_cast<std::int64_t>(lane);
      const double g = gamma[at] * load(dy[at]);
      plain[lane] += g;
      weighted[lane] += g * ((load(x[at]) - mean) * inverse);
    }
  }
  for (; i < count; ++i) {
    const double g = gamma[i] * load(dy[i]);
    plain[0] += g;
    weighted[0] += g * ((load(x[i]) - mean) * inverse);
  }
  *sum = total(plain);
  *sum_xhat = total(weighted);
}
REPRISE_VECTOR void row_sums(const float* x, const float* dy, const float* gamma, float mean,
                             float inverse, std::int64_t count, double* sum, double* sum_xhat) {
  row_sums_in(x, dy, gamma, mean, inverse, count, sum, sum_xhat);
}
REPRISE_VECTOR void row_sums(const Bf16* x, const Bf16* dy, const float* gamma, float mean,
                             float inverse, std::int64_t count, double* sum, double* sum_xhat) {
  row_sums_in(x, dy, gamma, mean, inverse, count, sum, sum_xhat);
}

// dx = inverse * (gamma * dy - a - xhat * b); dx may be dy.
template <class T>
[[gnu::always_inline]] inline void input_grad_in(const T* x, const T* dy, const float* gamma,
                                                 float mean, float inverse, float a, float b, T* dx,
                                                 std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float xhat = (load(x[i]) - mean) * inverse;
    dx[i] = stored<T>(inverse * (gamma[i] * load(dy[i]) - a - xhat * b));
  }
}
REPRISE_VECTOR void input_grad(const float* x, const float* dy, const float* gamma, float mean,
                               float inverse, float a, float b, float* dx, std::int64_t count) {
  input_grad_in(x, dy, gamma, mean, inverse, a, b, dx, count);
}
REPRISE_VECTOR void input_grad(const Bf16* x, const Bf16* dy, const float* gamma, float mean,
                               float inverse, float a, float b, Bf16* dx, std::int64_t count) {
  input_grad_in(x, dy, gamma, mean, inverse, a, b, dx, count);
}

}  // namespace

// x gamma beta => y mean var
std::unique_ptr<Kernel> plan_layer_norm(Booking& b) {
  const Sizes s = sizes_of(b);
  for (std::size_t i = 0; i < 3; ++i) b.require_plain(i);
  for (std::size_t o = 0; o < 3; ++o) b.produce_plain(o);
  b.flops(8.0 * static_cast<double>(s.rows * s.features));
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      const std::int64_t d = s.features;
      parallel_ranges(s.rows, s.rows * d, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t m = begin; m < end; ++m) {
          const T* x = run.input<T>(0) + m * d;
          const double mean = sum_of(x, d) / static_cast<double>(d);
          const auto variance =
              static_cast<float>(squares_around(x, d, mean) / static_cast<double>(d));
          run.output<float>(1)[m] = static_cast<float>(mean);
          run.output<float>(2)[m] = variance;
          normalize(x, run.input<float>(1), run.input<float>(2), static_cast<float>(mean),
                    static_cast<float>(s.inverse_deviation(variance)), run.output<T>(0) + m * d, d);
        }
      });
    });
  });
}

// x dy mean var gamma => dx dgamma dbeta. Rows are cut into parts with sums of their own, which are
// added in order at the end.
std::unique_ptr<Kernel> plan_layer_norm_grad(Booking& b) {
  const Sizes s = sizes_of(b);
  for (std::size_t i = 0; i < 5; ++i) b.require_plain(i);
  for (std::size_t o = 0; o < 3; ++o) b.produce_plain(o);
  b.flops(16.0 * static_cast<double>(s.rows * s.features));
  const std::int64_t parts = std::clamp<std::int64_t>(s.rows / 16, 1, 16);
  b.workspace(parts * 2 * s.features * static_cast<Bytes>(sizeof(double)));
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      const std::int64_t d = s.features;
      const float* gamma = run.input<float>(4);
      auto* sums = run.scratch<double>();
      parallel_parts(parts, s.rows, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
        double* dgamma = sums + part * 2 * d;
        double* dbeta = dgamma + d;
        std::fill_n(dgamma, 2 * d, 0.0);
        for (std::int64_t m = begin; m < end; ++m) {
          const T* x = run.input<T>(0) + m * d;
          const T* dy = run.input<T>(1) + m * d;
          const float mean = run.input<float>(2)[m];
          const auto inverse = static_cast<float>(s.inverse_deviation(run.input<float>(3)[m]));
          add_vector_grads(x, dy, mean, inverse, dgamma, dbeta, d);
          double sum = 0;
          double sum_xhat = 0;
          row_sums(x, dy, gamma, mean, inverse, d, &sum, &sum_xhat);
          input_grad(x, dy, gamma, mean, inverse, static_cast<float>(sum / static_cast<double>(d)),
                     static_cast<float>(sum_xhat / static_cast<double>(d)),
                     run.output<T>(0) + m * d, d);
        }
      });
      for (std::int64_t i = 0; i < d; ++i) {
        double dgamma = 0;
        double dbeta = 0;
        for (std::int64_t part = 0; part < parts; ++part) {
          dgamma += sums[part * 2 * d + i];
          dbeta += sums[part * 2 * d + d + i];
        }
        run.output<float>(1)[i] = static_cast<float>(dgamma);
        run.output<float>(2)[i] = static_cast<float>(dbeta);
      }
    });
  });
}

}  // namespace reprise::kernels::cpu
