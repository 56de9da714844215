// Pooling of whole images, and nearest-neighbour upsampling.

#include "kernels/cuda/resample.h"

#include <algorithm>

#include "kernels/cuda/channel_sums.h"
#include "kernels/cuda/element_type.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

using graph::Shape;

std::int64_t pixels_of(const Shape& image) {
  return image[2] * image[3];
}

float inverse(std::int64_t pixels) {
  return static_cast<float>(1.0 / static_cast<double>(std::max<std::int64_t>(pixels, 1)));
}

UpsampleSizes upsample_sizes(Booking& b, const Shape& small) {
  b.flops(static_cast<double>(
      std::max(graph::element_count(b.input(0).shape), graph::element_count(b.output(0).shape))));
  return {.images = small[0] * small[1],
          .height = small[2],
          .width = small[3],
          .factor = b.attributes<graph::UpsampleAttributes>().factor};
}

}  // namespace

// x[N,C,H,W] => y[N,C]
std::unique_ptr<Kernel> plan_global_avg_pool(Booking& b) {
  const Shape& x = b.input(0).shape;
  const SumPlan plan(SumSizes{.channels = x[0] * x[1], .inner = pixels_of(x)});
  const std::size_t at = b.workspace(static_cast<Bytes>(plan.scratch_bytes()));
  b.flops(static_cast<double>(graph::element_count(x)));
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([plan, at, factor = inverse(pixels_of(x))](const Run& run) {
      launch_sums(plan, factor, run.input<T>(0), nullptr, run.output<T>(0), run.scratch<double>(at),
                  run.stream());
    });
  });
}

// dy[N,C] => dx[N,C,H,W]
std::unique_ptr<Kernel> plan_global_avg_pool_grad(Booking& b) {
  const Shape& dx = b.output(0).shape;
  const std::int64_t count = graph::element_count(dx);
  b.flops(static_cast<double>(count));
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([count, pixels = pixels_of(dx)](const Run& run) {
      launch_repeat(pixels, inverse(pixels), run.input<T>(0), run.output<T>(0), count,
                    run.stream());
    });
  });
}

// x => y
std::unique_ptr<Kernel> plan_upsample(Booking& b) {
  const UpsampleSizes s = upsample_sizes(b, b.input(0).shape);
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([s](const Run& run) {
      launch_upsample(s, run.input<T>(0), run.output<T>(0), run.stream());
    });
  });
}

// dy => dx
std::unique_ptr<Kernel> plan_upsample_grad(Booking& b) {
  const UpsampleSizes s = upsample_sizes(b, b.output(0).shape);
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([s](const Run& run) {
      launch_upsample_grad(s, run.input<T>(0), run.output<T>(0), run.stream());
    });
  });
}

}  // namespace reprise::kernels::cuda
