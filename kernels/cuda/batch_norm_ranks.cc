// Batch normalisation over ranks (graph/synchronise.h): each sum in a node of its own, since sums
// over the ranks come between them. A kernel cannot stop a step: "parts" that make no sense, or too
// few values, show as statistics that are not numbers or as zeros.

#include "kernels/cuda/batch_norm_ranks.h"

#include "kernels/cuda/element_type.h"
#include "kernels/cuda/norm_sizes.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

int ranks_of(const Booking& b, std::size_t parts) {
  return static_cast<int>(b.input(parts).shape[0] - 1);
}

// `sizes` with the "parts" that lie in input `parts`.
NormSizes over_ranks(NormSizes sizes, const Run& run, std::size_t parts) {
  sizes.ranks = run.input<std::int32_t>(parts);
  return sizes;
}

double elements(const Booking& b) {
  return static_cast<double>(graph::element_count(b.input(0).shape));
}

}  // namespace

// x parts => moments[D,2,C]
std::unique_ptr<Kernel> plan_batch_norm_moments(Booking& b) {
  NormSizes sizes{.x = channel_sizes(b.input(0).shape)};
  sizes.rank_count = ranks_of(b, 1);
  const NormWorkspace workspace(b, sizes.x);
  b.flops(4.0 * elements(b));
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Run& run) {
      const NormSizes s = over_ranks(sizes, run, 1);
      launch_moment_sums(s, workspace.plan(), run.input<T>(0), workspace.partial(run),
                         run.stream());
      launch_finish_rank_moments(s, workspace.plan(), workspace.partial(run), run.output(0),
                                 run.stream());
    });
  });
}

// moments parts => mean var sample_var
std::unique_ptr<Kernel> plan_batch_norm_combine(Booking& b) {
  const int ranks = ranks_of(b, 1);
  const std::int64_t channels = b.input(0).shape[2];
  const std::int64_t values = b.attributes<graph::CombineAttributes>().values;
  b.flops(10.0 * static_cast<double>(ranks * channels));
  return make_kernel([=](const Run& run) {
    launch_combine_moments(run.input<std::int32_t>(1), ranks, channels, values, run.input(0),
                           run.output(0), run.output(1), run.output(2), run.stream());
  });
}

// x gamma beta mean var parts => y
std::unique_ptr<Kernel> plan_batch_norm_apply(Booking& b) {
  NormSizes sizes = norm_sizes(b);
  sizes.rank_count = ranks_of(b, 5);
  const std::size_t at = b.workspace(sizes.x.channels * static_cast<Bytes>(sizeof(float)));
  b.flops(4.0 * elements(b));
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Run& run) {
      launch_normalise(over_ranks(sizes, run, 5), run.input<T>(0), run.input(1), run.input(2),
                       run.input(3), run.input(4), run.output<T>(0), run.scratch(at), run.stream());
    });
  });
}

// x dy mean var parts => sums[2,C]
std::unique_ptr<Kernel> plan_batch_norm_grad_sums(Booking& b) {
  NormSizes sizes = norm_sizes(b);
  sizes.rank_count = ranks_of(b, 4);
  const NormWorkspace workspace(b, sizes.x);
  b.flops(5.0 * elements(b));
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Run& run) {
      launch_grad_sums(over_ranks(sizes, run, 4), workspace.plan(), run.input<T>(0),
                       run.input<T>(1), run.input(2), workspace.partial(run), run.stream());
      launch_finish_rank_grad_sums(sizes, workspace.plan(), workspace.partial(run), run.input(3),
                                   run.output(0), run.stream());
    });
  });
}

// x dy mean var gamma sums parts => dx dgamma dbeta
std::unique_ptr<Kernel> plan_batch_norm_grad_input(Booking& b) {
  NormSizes sizes = norm_sizes(b);
  sizes.rank_count = ranks_of(b, 6);
  const std::size_t at =
      b.workspace(kNormCoefficients * sizes.x.channels * static_cast<Bytes>(sizeof(float)));
  b.flops(6.0 * elements(b));
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Run& run) {
      const NormSizes s = over_ranks(sizes, run, 6);
      launch_rank_grad_coefficients(s, run.input(3), run.input(4), run.input(5), run.output(1),
                                    run.output(2), run.scratch(at), run.stream());
      launch_normalise_grad(s, run.input<T>(0), run.input<T>(1), run.input(2), run.scratch(at),
                            run.output<T>(0), run.stream());
    });
  });
}

}  // namespace reprise::kernels::cuda
