// Ops that move elements. A part along an axis is a stretch of each row of the whole, where a row
// is what lies behind one index of the axes in front.

#include "kernels/cuda/shape_ops.h"

#include <type_traits>
#include <vector>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

// Sizes in elements around one axis.
struct AxisView {
  std::int64_t outer = 1, inner = 1;

  AxisView(const graph::Shape& shape, std::int64_t axis) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (static_cast<std::int64_t>(d) < axis) outer *= shape[d];
      if (static_cast<std::int64_t>(d) > axis) inner *= shape[d];
    }
  }
};

// Calls f(std::type_identity<T>{}) with a type of the size of x's elements.
template <class F>
auto with_moved(const Booking& b, F&& f) {
  switch (graph::dtype_bytes(b.input(0).dtype)) {
    case sizeof(std::int32_t):
      return f(std::type_identity<std::int32_t>{});
    case sizeof(BFloat16):
      return f(std::type_identity<BFloat16>{});
    default:
      throw b.unsupported("its elements have another size than two or four bytes");
  }
}

}  // namespace

// x => y: the same bytes, in place or not.
std::unique_ptr<Kernel> plan_reshape(Booking& b) {
  const graph::Value& y = b.output(0);
  const Bytes bytes = graph::element_count(y.shape) * graph::dtype_bytes(y.dtype);
  return make_kernel([bytes](const Run& run) { copy_to_output(run, 0, 0, bytes); });
}

// x1 x2 ... => y
std::unique_ptr<Kernel> plan_concat(Booking& b) {
  const std::int64_t axis = b.attributes<graph::AxisAttributes>().axis;
  const auto d = static_cast<std::size_t>(axis);
  const graph::Shape& y = b.output(0).shape;
  const AxisView view(y, axis);
  struct Part {
    RowCopy copy;
    std::int64_t at;
  };
  std::vector<Part> parts;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < b.inputs(); ++i) {
    const std::int64_t width = b.input(i).shape[d] * view.inner;
    parts.push_back(
        {{.rows = view.outer, .width = width, .from_stride = width, .to_stride = y[d] * view.inner},
         at});
    at += width;
  }
  return with_moved(b, [&]<class T>(std::type_identity<T>) {
    return make_kernel([parts](const Run& run) {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        launch_copy_rows(parts[i].copy, run.input<T>(i), run.output<T>(0) + parts[i].at,
                         run.stream());
      }
    });
  });
}

// x => y
std::unique_ptr<Kernel> plan_slice(Booking& b) {
  const auto& a = b.attributes<graph::AxisAttributes>();
  const AxisView view(b.input(0).shape, a.axis);
  const std::int64_t width = (a.end - a.begin) * view.inner;
  const std::int64_t row = b.input(0).shape[static_cast<std::size_t>(a.axis)] * view.inner;
  const RowCopy copy{.rows = view.outer, .width = width, .from_stride = row, .to_stride = width};
  b.moves(2.0 * static_cast<double>(plain_bytes(b.output(0))));
  return with_moved(b, [&, at = a.begin * view.inner]<class T>(std::type_identity<T>) {
    return make_kernel([copy, at](const Run& run) {
      launch_copy_rows(copy, run.input<T>(0) + at, run.output<T>(0), run.stream());
    });
  });
}

// dy => dx, zeros around it
std::unique_ptr<Kernel> plan_slice_grad(Booking& b) {
  const auto& a = b.attributes<graph::AxisAttributes>();
  const AxisView view(b.output(0).shape, a.axis);
  const std::int64_t width = b.input(0).shape[static_cast<std::size_t>(a.axis)] * view.inner;
  const RowCopy copy{
      .rows = view.outer, .width = width, .from_stride = width, .to_stride = a.full * view.inner};
  const auto bytes = static_cast<std::size_t>(plain_bytes(b.output(0)));
  const bool whole = copy.to_stride == width;
  return with_moved(b, [&, at = a.begin * view.inner]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Run& run) {
      T* dx = run.output<T>(0);
      if (!whole && bytes > 0) {
        check(cudaMemsetAsync(dx, 0, bytes, run.stream()), "cudaMemsetAsync");
      }
      launch_copy_rows(copy, run.input<T>(0), dx + at, run.stream());
    });
  });
}

// => y
std::unique_ptr<Kernel> plan_fill(Booking& b) {
  const std::int64_t count = graph::element_count(b.output(0).shape);
  const auto value = static_cast<float>(b.attributes<graph::ShapeAttributes>().value);
  return make_kernel(
      [count, value](const Run& run) { launch_fill(value, run.output(0), count, run.stream()); });
}

}  // namespace reprise::kernels::cuda
