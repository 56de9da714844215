// Optimizer steps: one pass over parameter, gradient and state, in the parameter's own layout. All
// of them map zeros to zeros, so that padding stays zero.

#include <cmath>
#include <cstring>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace reprise::kernels::cpu {
namespace {

struct SgdStep {
  float rate, momentum, weight_decay;
  bool nesterov;
};

REPRISE_VECTOR void sgd(const SgdStep& s, const float* p, const float* g, float* out,
                        std::int64_t count) {
  const float rate = s.rate;
  const float decay = s.weight_decay;
  for (std::int64_t i = 0; i < count; ++i) out[i] = p[i] - rate * (g[i] + decay * p[i]);
}

REPRISE_VECTOR void sgd_momentum(const SgdStep& s, const float* p, const float* g, const float* m,
                                 float* out, float* m_out, std::int64_t count) {
  const float rate = s.rate;
  const float decay = s.weight_decay;
  const float momentum = s.momentum;
  // step = nesterov ? gradient + momentum * velocity : velocity
  const float of_gradient = s.nesterov ? 1.0f : 0.0f;
  const float of_velocity = s.nesterov ? momentum : 1.0f;
  for (std::int64_t i = 0; i < count; ++i) {
    const float gradient = g[i] + decay * p[i];
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
};

AdamStep adam_step(const graph::AdamAttributes& a, std::uint64_t step) {
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
          .shrink = static_cast<float>(a.decoupled ? 1.0 - rate * a.weight_decay : 1.0)};
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
    const float gradient = x.g[i] + k.coupled_decay * x.p[i];
    const float first = k.beta1 * x.m[i] + k.rest1 * gradient;
    const float second = k.beta2 * x.v[i] + k.rest2 * gradient * gradient;
    const float root = __builtin_sqrtf(second) * k.root_correction + k.epsilon;
    x.p_out[i] = k.shrink * x.p[i] - k.rate * first / root;
    x.m_out[i] = first;
    x.v_out[i] = second;
  }
}

// Everything in the layout of input 0, the persistent value.
std::int64_t in_layout_of_first(Booking& b) {
  for (std::size_t i = 1; i < b.inputs(); ++i) b.require_like(i, 0);
  for (std::size_t o = 0; o < b.node().outputs.size(); ++o) b.produce_like(o, 0);
  return b.layout(0).bytes / static_cast<Bytes>(sizeof(float));
}

}  // namespace

// param grad momentum? => param' momentum'?
std::unique_ptr<Kernel> plan_sgd(Booking& b) {
  const auto attributes = b.attributes<graph::SgdAttributes>();
  const bool with_momentum = b.inputs() == 3;
  const std::int64_t count = in_layout_of_first(b);
  b.flops((with_momentum ? 7.0 : 4.0) * static_cast<double>(count));
  return make_kernel([=](const Run& run) {
    const SgdStep step{.rate = static_cast<float>(attributes.rate.at(run.step.step)),
                       .momentum = static_cast<float>(attributes.momentum),
                       .weight_decay = static_cast<float>(attributes.weight_decay),
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

// param grad m v => param' m' v'
std::unique_ptr<Kernel> plan_adam(Booking& b) {
  const auto attributes = b.attributes<graph::AdamAttributes>();
  const std::int64_t count = in_layout_of_first(b);
  b.flops(14.0 * static_cast<double>(count));
  return make_kernel([=](const Run& run) {
    const AdamStep step = adam_step(attributes, run.step.step);
    const AdamArrays arrays{run.input<float>(0), run.input<float>(1),  run.input<float>(2),
                            run.input<float>(3), run.output<float>(0), run.output<float>(1),
                            run.output<float>(2)};
    parallel_ranges(count, count,
                    [&](std::int64_t begin, std::int64_t end) { adam(step, arrays, begin, end); });
  });
}

// variable x => variable' = x
std::unique_ptr<Kernel> plan_assign(Booking& b) {
  b.require_like(1, 0);
  b.produce_like(0, 0);
  const std::int64_t bytes = b.layout(0).bytes;
  return make_kernel([=](const Run& run) {
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
