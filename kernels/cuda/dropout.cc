// Dropout and its gradient: the same map.

#include "kernels/cuda/dropout.h"

#include "kernels/cuda/element_type.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {

// x => y
std::unique_ptr<Kernel> plan_dropout(Booking& b) {
  const auto& a = b.attributes<graph::DropoutAttributes>();
  const std::int64_t count = graph::element_count(b.input(0).shape);
  const Dropping dropping{.threshold = graph::dropout_threshold(a.probability),
                          .stream = static_cast<std::uint32_t>(a.stream),
                          .scale = static_cast<float>(1.0 / (1.0 - a.probability))};
  b.flops(12.0 * static_cast<double>(count));
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Run& run) {
      launch_dropout(dropping, run.step, run.input<T>(0), run.output<T>(0), count, run.stream());
    });
  });
}

}  // namespace reprise::kernels::cuda
