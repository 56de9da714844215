// Updates of persistent values, and the norm that clips and guards them.

#include "kernels/cuda/update.h"

#include <cmath>
#include <type_traits>
#include <vector>

#include "fmt/format.h"

#include "kernels/cuda/copy.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

// All that makes the rate what it is at each step.
std::string text_of(const graph::LearningRate& rate) {
  std::string text;
  graph::visit_rate(rate, [&text](std::string_view name, const auto& field) {
    using T = std::decay_t<decltype(field)>;
    if constexpr (std::is_enum_v<T>) {
      text += fmt::format(" {}={}", name, static_cast<int>(field));
    } else {
      text += fmt::format(" {}={}", name, field);
    }
  });
  return text;
}

template <class A>
GuardSettings guard_settings(const A& a) {
  return {.clip_norm = a.clip_norm, .skip_nonfinite = a.skip_nonfinite};
}

const double* scalars(const Run& run, std::size_t first = 0) {
  return reinterpret_cast<const double*>(reinterpret_cast<const std::byte*>(run.step) +
                                         offsetof(StepValues, scalars)) +
         first;
}

}  // namespace

// x1 x2 ... => norm
std::unique_ptr<Kernel> plan_global_norm(Booking& b) {
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> first_part;  // of each group of kNormArrays
  std::int64_t parts = 0;
  double flops = 0;
  for (std::size_t i = 0; i < b.inputs(); ++i) {
    if (i % kNormArrays == 0) first_part.push_back(parts);
    counts.push_back(graph::element_count(b.input(i).shape));
    parts += norm_parts(counts.back());
    flops += 2.0 * static_cast<double>(counts.back());
  }
  b.flops(flops);
  const std::size_t at = b.workspace(parts * static_cast<Bytes>(sizeof(double)));
  return make_kernel([counts, first_part, parts, at](const Run& run) {
    auto* partial = run.scratch<double>(at);
    for (std::size_t group = 0; group < first_part.size(); ++group) {
      NormArrays arrays{};
      for (std::size_t k = 0; k < kNormArrays; ++k) {
        const std::size_t i = group * kNormArrays + k;
        arrays.x[k] = run.input(i < counts.size() ? i : 0);
        arrays.count[k] = i < counts.size() ? counts[i] : 0;
      }
      launch_sums_of_squares(arrays, partial + first_part[group], run.stream());
    }
    launch_root_of_sum(partial, parts, run.output(0), run.stream());
  });
}

// param grad momentum? norm? => param' momentum'?
std::unique_ptr<Kernel> plan_sgd(Booking& b) {
  const auto& a = b.attributes<graph::SgdAttributes>();
  const bool guarded = graph::takes_norm(a);
  const std::size_t last = b.inputs() - 1;
  const bool momentum = b.inputs() == (guarded ? 4U : 3U);
  const std::int64_t count = graph::element_count(b.output(0).shape);
  const std::size_t rate = b.step_scalar(
      "rate" + text_of(a.rate),
      [rate = a.rate](const graph::StepContext& context) { return rate.at(context.step); });
  const SgdSettings settings{.momentum = static_cast<float>(a.momentum),
                             .weight_decay = static_cast<float>(a.weight_decay),
                             .nesterov = a.nesterov,
                             .guard = guard_settings(a)};
  b.flops((momentum ? 7.0 : 4.0) * static_cast<double>(count));
  return make_kernel([=](const Run& run) {
    run.updates.add(settings, scalars(run, rate), guarded ? run.input(last) : nullptr,
                    {.p = run.input(0),
                     .g = run.input(1),
                     .m = momentum ? run.input(2) : nullptr,
                     .p_out = run.output(0),
                     .m_out = momentum ? run.output(1) : nullptr,
                     .count = count},
                    run.stream());
  });
}

namespace {

AdamScalars adam_scalars(Booking& b, const graph::AdamAttributes& a) {
  const auto power = [](double beta, const graph::StepContext& context) {
    return std::pow(beta, static_cast<double>(context.step) + 1.0);
  };
  const std::string rate = text_of(a.rate);
  const double decay = a.decoupled ? a.weight_decay : 0.0;
  const auto at = [](std::size_t index) { return static_cast<std::int64_t>(index); };
  return {.rate = at(b.step_scalar(fmt::format("adam rate{} beta1={}", rate, a.beta1),
                                   [=, r = a.rate, beta = a.beta1](const auto& context) {
                                     return r.at(context.step) / (1.0 - power(beta, context));
                                   })),
          .root_correction = at(b.step_scalar(fmt::format("adam root beta2={}", a.beta2),
                                              [=, beta = a.beta2](const auto& context) {
                                                return 1.0 / std::sqrt(1.0 - power(beta, context));
                                              })),
          .shrink = at(b.step_scalar(
              fmt::format("shrink{} decay={}", rate, decay),
              [=, r = a.rate](const auto& context) { return 1.0 - r.at(context.step) * decay; }))};
}

}  // namespace

// param grad m v norm? => param' m' v'
std::unique_ptr<Kernel> plan_adam(Booking& b) {
  const auto& a = b.attributes<graph::AdamAttributes>();
  const bool guarded = graph::takes_norm(a);
  const std::int64_t count = graph::element_count(b.output(0).shape);
  const AdamScalars at = adam_scalars(b, a);
  const AdamSettings settings{
      .beta1 = static_cast<float>(a.beta1),
      .beta2 = static_cast<float>(a.beta2),
      .rest1 = static_cast<float>(1.0 - a.beta1),
      .rest2 = static_cast<float>(1.0 - a.beta2),
      .epsilon = static_cast<float>(a.epsilon),
      .coupled_decay = static_cast<float>(a.decoupled ? 0.0 : a.weight_decay),
      .guard = guard_settings(a)};
  b.flops(14.0 * static_cast<double>(count));
  return make_kernel([=](const Run& run) {
    run.updates.add(settings, scalars(run), at, guarded ? run.input(4) : nullptr,
                    {.p = run.input(0),
                     .g = run.input(1),
                     .m = run.input(2),
                     .v = run.input(3),
                     .p_out = run.output(0),
                     .m_out = run.output(1),
                     .v_out = run.output(2),
                     .count = count},
                    run.stream());
  });
}

// variable x norm? => variable' = x
std::unique_ptr<Kernel> plan_assign(Booking& b) {
  const graph::Value& variable = b.output(0);
  const Bytes bytes = graph::element_count(variable.shape) * graph::dtype_bytes(variable.dtype);
  if (b.inputs() < 3) {
    return make_kernel([bytes](const Run& run) { copy_to_output(run, 1, 0, bytes); });
  }
  if (bytes % 4 != 0) throw b.unsupported("a guarded value is of four-byte elements");
  return make_kernel([bytes](const Run& run) {
    launch_guarded_assign(run.input(2), run.input<std::int32_t>(0), run.input<std::int32_t>(1),
                          run.output<std::int32_t>(0), bytes / 4, run.stream());
  });
}

// The executor runs these two where there are other ranks; alone, a sum is its only term, which is
// there already.
std::unique_ptr<Kernel> plan_all_reduce(Booking& b) {
  const graph::Value& y = b.output(0);
  const Bytes bytes = graph::element_count(y.shape) * graph::dtype_bytes(y.dtype);
  return make_kernel([bytes](const Run& run) { copy_to_output(run, 0, 0, bytes); });
}

}  // namespace reprise::kernels::cuda
