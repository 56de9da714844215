#include "kernels/cuda/layer_norm.h"

#include "kernels/cuda/element_type.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

LayerNormSizes sizes_of(const Booking& b) {
  const graph::Shape& x = b.input(0).shape;
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < x.size(); ++d) rows *= x[d];
  return {rows, x.back(), b.attributes<graph::NormAttributes>().epsilon};
}

double elements(const LayerNormSizes& s) {
  return static_cast<double>(s.rows * s.columns);
}

}  // namespace

// x gamma beta => y mean var
std::unique_ptr<Kernel> plan_layer_norm(Booking& b) {
  const LayerNormSizes s = sizes_of(b);
  b.flops(8.0 * elements(s));
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([s](const Run& run) {
      launch_layer_norm(s, run.input<T>(0), run.input(1), run.input(2), run.output<T>(0),
                        run.output(1), run.output(2), run.stream());
    });
  });
}

// x dy mean var gamma => dx dgamma dbeta
std::unique_ptr<Kernel> plan_layer_norm_grad(Booking& b) {
  const LayerNormSizes s = sizes_of(b);
  const std::size_t at = b.workspace(static_cast<Bytes>(s.scratch_bytes()));
  b.flops(14.0 * elements(s));
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([s, at](const Run& run) {
      launch_layer_norm_grad(s, run.input<T>(0), run.input<T>(1), run.input(2), run.input(3),
                             run.input(4), run.output<T>(0), run.output(1), run.output(2),
                             run.scratch<double>(at), run.stream());
    });
  });
}

}  // namespace reprise::kernels::cuda
