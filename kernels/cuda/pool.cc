// Windowed pooling.

#include "kernels/cuda/pool.h"

#include <limits>

#include "kernels/cuda/element_type.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

using graph::Pool2dAttributes;
using graph::Shape;

PoolSizes sizes_of(Booking& b, const Shape& x, const Shape& y) {
  const auto& a = b.attributes<Pool2dAttributes>();
  PoolSizes s{.images = x[0] * x[1],
              .x_height = x[2],
              .x_width = x[3],
              .y_height = y[2],
              .y_width = y[3],
              .count_padding = a.count_padding};
  for (std::size_t i = 0; i < 2; ++i) {
    s.kernel[i] = a.kernel[i];
    s.stride[i] = a.stride[i];
    s.padding[i] = a.padding[i];
    constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 4;  // sums of these fit an int
    if (std::max({x[i + 2], y[i + 2] * a.stride[i], a.kernel[i], a.padding[i]}) > kMost) {
      throw b.unsupported("an axis is too long");
    }
  }
  b.flops(static_cast<double>(s.y_count() * s.kernel[0] * s.kernel[1]));
  return s;
}

}  // namespace

// x => y indices?
std::unique_ptr<Kernel> plan_pool(Booking& b) {
  const PoolSizes s = sizes_of(b, b.input(0).shape, b.output(0).shape);
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    if (b.node().op == graph::OpKind::kMaxPool) {
      return make_kernel([s](const Run& run) {
        launch_max_pool(s, run.input<T>(0), run.output<T>(0), run.output<std::uint8_t>(1),
                        run.stream());
      });
    }
    return make_kernel([s](const Run& run) {
      launch_avg_pool(s, run.input<T>(0), run.output<T>(0), run.stream());
    });
  });
}

// dy indices? => dx
std::unique_ptr<Kernel> plan_pool_grad(Booking& b) {
  const PoolSizes s = sizes_of(b, b.output(0).shape, b.input(0).shape);
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    if (b.node().op == graph::OpKind::kMaxPoolGrad) {
      return make_kernel([s](const Run& run) {
        launch_max_pool_grad(s, run.input<T>(0), run.input<std::uint8_t>(1), run.output<T>(0),
                             run.stream());
      });
    }
    return make_kernel([s](const Run& run) {
      launch_avg_pool_grad(s, run.input<T>(0), run.output<T>(0), run.stream());
    });
  });
}

}  // namespace reprise::kernels::cuda
