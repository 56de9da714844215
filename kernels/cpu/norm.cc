// Batch normalisation on oneDNN. Its variance is the population one; the running statistics are
// updated by a node of their own.

#include "kernels/cpu/ops.h"
#include "kernels/cpu/primitive.h"

namespace reprise::kernels::cpu {
namespace {

using dnnl::normalization_flags;
using dnnl::prop_kind;
using graph::NormAttributes;

dnnl::batch_normalization_forward::primitive_desc forward(const Desc& x, double epsilon,
                                                          prop_kind kind,
                                                          normalization_flags flags) {
  const dnnl::batch_normalization_forward::desc desc(
      kind, x, static_cast<float>(epsilon),
      flags | normalization_flags::use_scale | normalization_flags::use_shift);
  return {desc, user_scratchpad(), cpu_engine()};
}

void require_vectors(Booking& b, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i <= last; ++i) b.require_plain(i);
}

}  // namespace

// x gamma beta => y mean var
std::unique_ptr<Kernel> plan_batch_norm(Booking& b) {
  const Desc x = b.layout(0).desc;
  const auto pd = forward(x, b.attributes<NormAttributes>().epsilon, prop_kind::forward_training,
                          normalization_flags::none);
  require_vectors(b, 1, 2);
  b.produce_like(0, 0);
  b.produce_plain(1);
  b.produce_plain(2);
  b.flops(8.0 * static_cast<double>(graph::element_count(b.input(0).shape)));
  const Desc vector = row_major({b.input(1).shape[0]});
  const std::size_t at = b.workspace(static_cast<Bytes>(pd.scratchpad_desc().get_size()));
  return std::make_unique<PrimitiveKernel>(
      dnnl::batch_normalization_forward(pd),
      std::vector{reads(DNNL_ARG_SRC, 0, x), reads(DNNL_ARG_SCALE, 1, vector),
                  reads(DNNL_ARG_SHIFT, 2, vector), writes(DNNL_ARG_DST, 0, x),
                  writes(DNNL_ARG_MEAN, 1, vector), writes(DNNL_ARG_VARIANCE, 2, vector),
                  scratch(pd.scratchpad_desc(), at)});
}

// x dy mean var gamma => dx dgamma dbeta
std::unique_ptr<Kernel> plan_batch_norm_grad(Booking& b) {
  const Desc x = b.layout(0).desc;
  const double epsilon = b.attributes<NormAttributes>().epsilon;
  const auto hint = forward(x, epsilon, prop_kind::forward_training, normalization_flags::none);
  const dnnl::batch_normalization_backward::desc desc(
      prop_kind::backward, x, x, static_cast<float>(epsilon),
      normalization_flags::use_scale | normalization_flags::use_shift);
  const dnnl::batch_normalization_backward::primitive_desc pd(desc, user_scratchpad(), cpu_engine(),
                                                              hint);
  b.require_like(1, 0);
  require_vectors(b, 2, 4);
  b.produce_like(0, 0);
  b.produce_plain(1);
  b.produce_plain(2);
  b.flops(12.0 * static_cast<double>(graph::element_count(b.input(0).shape)));
  const Desc vector = row_major({b.input(2).shape[0]});
  const std::size_t at = b.workspace(static_cast<Bytes>(pd.scratchpad_desc().get_size()));
  // oneDNN 2.6 wants the shift as an argument although no gradient depends on it; gamma stands in.
  return std::make_unique<PrimitiveKernel>(
      dnnl::batch_normalization_backward(pd),
      std::vector{reads(DNNL_ARG_SRC, 0, x), reads(DNNL_ARG_DIFF_DST, 1, x),
                  reads(DNNL_ARG_MEAN, 2, vector), reads(DNNL_ARG_VARIANCE, 3, vector),
                  reads(DNNL_ARG_SCALE, 4, vector), reads(DNNL_ARG_SHIFT, 4, vector),
                  writes(DNNL_ARG_DIFF_SRC, 0, x), writes(DNNL_ARG_DIFF_SCALE, 1, vector),
                  writes(DNNL_ARG_DIFF_SHIFT, 2, vector), scratch(pd.scratchpad_desc(), at)});
}

// x gamma beta running_mean running_var => y
std::unique_ptr<Kernel> plan_batch_norm_inference(Booking& b) {
  const Desc x = b.layout(0).desc;
  const auto pd = forward(x, b.attributes<NormAttributes>().epsilon, prop_kind::forward_inference,
                          normalization_flags::use_global_stats);
  require_vectors(b, 1, 4);
  b.produce_like(0, 0);
  b.flops(4.0 * static_cast<double>(graph::element_count(b.input(0).shape)));
  const Desc vector = row_major({b.input(1).shape[0]});
  const std::size_t at = b.workspace(static_cast<Bytes>(pd.scratchpad_desc().get_size()));
  return std::make_unique<PrimitiveKernel>(
      dnnl::batch_normalization_forward(pd),
      std::vector{reads(DNNL_ARG_SRC, 0, x), reads(DNNL_ARG_SCALE, 1, vector),
                  reads(DNNL_ARG_SHIFT, 2, vector), reads(DNNL_ARG_MEAN, 3, vector),
                  reads(DNNL_ARG_VARIANCE, 4, vector), writes(DNNL_ARG_DST, 0, x),
                  scratch(pd.scratchpad_desc(), at)});
}

// running_mean running_var mean var => running_mean' running_var'
std::unique_ptr<Kernel> plan_batch_norm_update(Booking& b) {
  const auto& a = b.attributes<graph::RunningUpdateAttributes>();
  require_vectors(b, 0, 3);
  b.produce_plain(0);
  b.produce_plain(1);
  const std::int64_t channels = b.input(0).shape[0];
  const double rate = a.rate;
  const double count = static_cast<double>(a.count);
  const double correction = a.unbiased ? count / (count - 1.0) : 1.0;
  return make_kernel([=](const Run& run) {
    for (std::size_t i = 0; i < 2; ++i) {
      const float* running = run.input<float>(i);
      const float* batch = run.input<float>(i + 2);
      float* out = run.output<float>(i);
      const double factor = rate * (i == 0 ? 1.0 : correction);
      for (std::int64_t c = 0; c < channels; ++c) {
        out[c] = static_cast<float>((1.0 - rate) * running[c] + factor * batch[c]);
      }
    }
  });
}

}  // namespace reprise::kernels::cpu
