// Optimizer steps: one pass over parameter, gradient and state, in the parameter's own layout. All
// of them map zeros to zeros, so that padding stays zero.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace reprise::kernels::cpu {
namespace {

struct SgdStep {
  float rate, momentum, weight_decay, scale;  // scale: of the gradient
  bool nesterov;
};

REPRISE_VECTOR void sgd(const SgdStep& s, const float* p, const float* g, float* out,
                        std::int64_t count) {
  const float rate = s.rate;
  const float decay = s.weight_decay;
  const float scale = s.scale;
  for (std::int64_t i = 0; i < count; ++i) out[i] = p[i] - rate * (scale * g[i] + decay * p[i]);
}

REPRISE_VECTOR void sgd_momentum(const SgdStep& s, const float* p, const float* g, const float* m,
                                 float* out, float* m_out, std::int64_t count) {
  const float rate = s.rate;
  const float decay = s.weight_decay;
  const float momentum = s.momentum;
  const float scale = s.scale;
  // step = nesterov ? gradient + momentum * velocity : velocity
  const float of_gradient = s.nesterov ? 1.0f : 0.0f;
  const float of_velocity = s.nesterov ? momentum : 1.0f;
  for (std::int64_t i = 0; i < count; ++i) {
    const float gradient = scale * g[i] + decay * p[i];
    const float velocity = momentum * m[i] + gradient;
    out[i] = p[i] - rate * (of_gradient * gradient + of_velocity * velocity);
    m_out[i] = velocity;
  }
}

struct AdamStep {
  float rate;  // with the correction of the first moment
  float beta1, beta2, epsilon;
  float rest1, rest2;     // 1 - beta, taken in f64: 1.0f - 0.999f is off by 1.3e-5 of itself
  float root_correction;  // 1 / sqrt(1 - beta2^t)
  float coupled_decay;    // added to the gradient
  float shrink;           // 1 - rate * decoupled weight decay
  float scale;            // of the gradient
};

AdamStep adam_step(const graph::AdamAttributes& a, std::uint64_t step, float scale) {
  const double t = static_cast<double>(step) + 1.0;
  const double rate = a.rate.at(step);
  return {.rate = static_cast<float>(rate / (1.0 - std::pow(a.beta1, t))),
          .beta1 = static_cast<float>(a.beta1),
          .beta2 = static_cast<float>(a.beta2),
          .epsilon = static_cast<float>(a.epsilon),
          .rest1 = static_cast<float>(1.0 - a.beta1),
          .rest2 = static_cast<float>(1.0 - a.beta2),
          .root_correction = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(a.beta2, t))),
          .coupled_decay = static_cast<float>(a.decoupled ? 0.0 : a.weight_decay),
          .shrink = static_cast<float>(a.decoupled ? 1.0 - rate * a.weight_decay : 1.0),
          .scale = scale};
}

struct AdamArrays {
  const float *p, *g, *m, *v;
  float *p_out, *m_out, *v_out;
};

REPRISE_VECTOR void adam(const AdamStep& s, const AdamArrays& a, std::int64_t begin,
                         std::int64_t end) {
  const AdamStep k = s;
  const AdamArrays x = a;
  for (std::int64_t i = begin; i < end; ++i) {
    const float gradient = k.scale * x.g[i] + k.coupled_decay * x.p[i];
    const float first = k.beta1 * x.m[i] + k.rest1 * gradient;
    const float second = k.beta2 * x.v[i] + k.rest2 * gradient * gradient;
    const float root = __builtin_sqrtf(second) * k.root_correction + k.epsilon;
    x.p_out[i] = k.shrink * x.p[i] - k.rate * first / root;
    x.m_out[i] = first;
    x.v_out[i] = second;
  }
}

// The norm of all gradients, the last input of the updates whose attributes ask for it.
template <class A>
class Guard {
 public:
  Guard(const A& attributes, std::size_t inputs) : attributes_(attributes), norm_(inputs - 1) {}

  // Of the gradient, as PyTorch's clip_grad_norm_ has it.
  [[nodiscard]] float scale(const Run& run) const {
    if (!(attributes_.clip_norm > 0)) return 1.0f;
    const double norm = static_cast<double>(*run.input<float>(norm_));
    const double scale = attributes_.clip_norm / (norm + 1e-6);
    return scale < 1.0 ? static_cast<float>(scale) : 1.0f;
  }
  [[nodiscard]] bool skips(const Run& run) const {
    return attributes_.skip_nonfinite && !std::isfinite(*run.input<float>(norm_));
  }

 private:
  A attributes_;
  std::size_t norm_;
};

void keep(const Run& run, std::size_t input, std::size_t output, std::int64_t bytes) {
  if (run.outputs[output] != run.inputs[input])
    std::memcpy(run.outputs[output], run.inputs[input], static_cast<std::size_t>(bytes));
}

// The first `inputs` inputs in the layout of input 0, the persistent value, and so all outputs; a
// norm follows. Returns the number of floats.
std::int64_t in_layout_of_first(Booking& b, std::size_t inputs) {
  for (std::size_t i = 1; i < inputs; ++i) b.require_like(i, 0);
  if (inputs < b.inputs()) b.require_plain(inputs);
  for (std::size_t o = 0; o < b.node().outputs.size(); ++o) b.produce_like(o, 0);
  return b.layout(0).bytes / static_cast<Bytes>(sizeof(float));
}

// Eight sums side by side, which any instruction set adds in the same order.
REPRISE_VECTOR double sum_of_squares(const float* x, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  double sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t k = 0; k < kLanes; ++k) {
      const double value = static_cast<double>(x[i + k]);
      sums[k] += value * value;
    }
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

// In parts that depend on the length alone: so the bits do not depend on the number of threads.
double sum_of_squares_in_parts(const float* x, std::int64_t count) {
  constexpr std::int64_t kPart = 4096;
  constexpr std::int64_t kMostParts = 256;
  const std::int64_t parts = std::clamp<std::int64_t>(count / kPart, 1, kMostParts);
  if (parts == 1) return sum_of_squares(x, count);
  std::array<double, kMostParts> sums;
  parallel_parts(parts, count, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    sums[static_cast<std::size_t>(part)] = sum_of_squares(x + begin, end - begin);
  });
  double sum = 0;
  for (std::int64_t part = 0; part < parts; ++part) sum += sums[static_cast<std::size_t>(part)];
  return sum;
}

}  // namespace

// x1 x2 ... => norm. Any layout will do: padding is zeros, which add nothing.
std::unique_ptr<Kernel> plan_global_norm(Booking& b) {
  std::vector<std::int64_t> counts;
  double flops = 0;
  for (std::size_t i = 0; i < b.inputs(); ++i) {
    counts.push_back(b.layout(i).bytes / static_cast<Bytes>(sizeof(float)));
    flops += 2.0 * static_cast<double>(counts.back());
  }
  b.flops(flops);
  b.produce_plain(0);
  return make_kernel([counts](const Run& run) {
    double squares = 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
      squares += sum_of_squares_in_parts(run.input<float>(i), counts[i]);
    *run.output<float>(0) = static_cast<float>(std::sqrt(squares));
  });
}

// param grad momentum? norm? => param' momentum'?
std::unique_ptr<Kernel> plan_sgd(Booking& b) {
  const auto attributes = b.attributes<graph::SgdAttributes>();
  const std::size_t inputs = b.inputs() - (graph::takes_norm(attributes) ? 1 : 0);
  const bool with_momentum = inputs == 3;
  const Guard guard(attributes, b.inputs());
  const std::int64_t count = in_layout_of_first(b, inputs);
  b.flops((with_momentum ? 7.0 : 4.0) * static_cast<double>(count));
  return make_kernel([=](const Run& run) {
    if (guard.skips(run)) {
      const auto bytes = count * static_cast<std::int64_t>(sizeof(float));
      keep(run, 0, 0, bytes);
      if (with_momentum) keep(run, 2, 1, bytes);
      return;
    }
    const SgdStep step{.rate = static_cast<float>(attributes.rate.at(run.step.step)),
                       .momentum = static_cast<float>(attributes.momentum),
                       .weight_decay = static_cast<float>(attributes.weight_decay),
                       .scale = guard.scale(run),
                       .nesterov = attributes.nesterov};
    parallel_ranges(count, count, [&](std::int64_t begin, std::int64_t end) {
      const float* p = run.input<float>(0) + begin;
      const float* g = run.input<float>(1) + begin;
      float* out = run.output<float>(0) + begin;
      if (with_momentum) {
        sgd_momentum(step, p, g, run.input<float>(2) + begin, out, run.output<float>(1) + begin,
                     end - begin);
      } else {
        sgd(step, p, g, out, end - begin);
      }
    });
  });
}

// param grad m v norm? => param' m' v'
std::unique_ptr<Kernel> plan_adam(Booking& b) {
  const auto attributes = b.attributes<graph::AdamAttributes>();
  const Guard guard(attributes, b.inputs());
  const std::int64_t count = in_layout_of_first(b, 4);
  b.flops(14.0 * static_cast<double>(count));
  return make_kernel([=](const Run& run) {
    if (guard.skips(run)) {
      const auto bytes = count * static_cast<std::int64_t>(sizeof(float));
      keep(run, 0, 0, bytes);
      keep(run, 2, 1, bytes);
      keep(run, 3, 2, bytes);
      return;
    }
    const AdamStep step = adam_step(attributes, run.step.step, guard.scale(run));
    const AdamArrays arrays{run.input<float>(0), run.input<float>(1),  run.input<float>(2),
                            run.input<float>(3), run.output<float>(0), run.output<float>(1),
                            run.output<float>(2)};
    parallel_ranges(count, count,
                    [&](std::int64_t begin, std::int64_t end) { adam(step, arrays, begin, end); });
  });
}

// variable x norm? => variable' = x
std::unique_ptr<Kernel> plan_assign(Booking& b) {
  b.require_like(1, 0);
  b.produce_like(0, 0);
  const std::int64_t bytes = b.layout(0).bytes;
  const bool guarded = b.inputs() == 3;
  if (guarded) b.require_plain(2);
  return make_kernel([=](const Run& run) {
    if (guarded && !std::isfinite(*run.input<float>(2))) return keep(run, 0, 0, bytes);
    if (run.outputs[0] == run.inputs[1]) return;
    parallel_ranges(bytes, bytes / 4, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(run.outputs[0] + begin, run.inputs[1] + begin,
                  static_cast<std::size_t>(end - begin));
    });
  });
}

// The executor runs these two where there are other ranks; alone, a sum is its only term, which is
// there already. Any layout will do, since all ranks have the same: padding adds up to zeros.
std::unique_ptr<Kernel> plan_all_reduce(Booking& b) {
  b.produce_like(0, 0);
  const std::int64_t bytes = b.layout(0).bytes;
  return make_kernel([=](const Run& run) {
    if (run.outputs[0] != run.inputs[0])
      std::memcpy(run.outputs[0], run.inputs[0], static_cast<std::size_t>(bytes));
  });
}

}  // namespace reprise::kernels::cpu
