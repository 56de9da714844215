#include "kernels/cuda/batch_norm.h"

#include "kernels/cuda/copy.h"
#include "kernels/cuda/element_type.h"
#include "kernels/cuda/norm_sizes.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

double elements(Booking& b) {
  return static_cast<double>(graph::element_count(b.input(0).shape));
}

}  // namespace

// x gamma beta => y mean var
std::unique_ptr<Kernel> plan_batch_norm(Booking& b) {
  const NormSizes sizes = norm_sizes(b);
  const NormWorkspace workspace(b, sizes.x);
  b.flops(8.0 * elements(b));
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Run& run) {
      launch_batch_norm(sizes, workspace.plan(), run.input<T>(0), run.input(1), run.input(2),
                        run.output<T>(0), run.output(1), run.output(2), workspace.partial(run),
                        workspace.coefficients(run), run.stream());
    });
  });
}

// x dy mean var gamma => dx dgamma dbeta
std::unique_ptr<Kernel> plan_batch_norm_grad(Booking& b) {
  const NormSizes sizes = norm_sizes(b);
  const NormWorkspace workspace(b, sizes.x);
  b.flops(12.0 * elements(b));
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Run& run) {
      launch_batch_norm_grad(sizes, workspace.plan(), run.input<T>(0), run.input<T>(1),
                             run.input(2), run.input(3), run.input(4), run.output<T>(0),
                             run.output(1), run.output(2), workspace.partial(run),
                             workspace.coefficients(run), run.stream());
    });
  });
}

// x gamma beta running_mean running_var => y
std::unique_ptr<Kernel> plan_batch_norm_inference(Booking& b) {
  const NormSizes sizes = norm_sizes(b);
  const std::size_t at = b.workspace(sizes.x.channels * static_cast<Bytes>(sizeof(float)));
  b.flops(4.0 * elements(b));
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Run& run) {
      launch_normalise(sizes, run.input<T>(0), run.input(1), run.input(2), run.input(3),
                       run.input(4), run.output<T>(0), run.scratch(at), run.stream());
    });
  });
}

// running_mean running_var (mean var)+ norm? => running_mean' running_var'
std::unique_ptr<Kernel> plan_batch_norm_update(Booking& b) {
  const auto& a = b.attributes<graph::RunningUpdateAttributes>();
  const bool guarded = graph::takes_norm(a);
  const std::size_t batches = (b.inputs() - 2) / 2;
  const std::int64_t channels = b.input(0).shape[0];
  const auto count = static_cast<double>(a.count);
  const double correction = a.unbiased ? count / (count - 1.0) : 1.0;
  const RunningUpdate update{.rate = a.rate, .var_rate = a.rate * correction};
  return make_kernel([=](const Run& run) {
    for (std::size_t i = 0; i < 2; ++i) {
      copy_to_output(run, i, i, channels * static_cast<Bytes>(sizeof(float)));
    }
    const float* norm = guarded ? run.input(2 + 2 * batches) : nullptr;
    for (std::size_t k = 0; k < batches; ++k) {
      launch_batch_norm_update(update, norm, run.input(2 + 2 * k), run.input(3 + 2 * k),
                               run.output(0), run.output(1), channels, run.stream());
    }
  });
}

}  // namespace reprise::kernels::cuda
