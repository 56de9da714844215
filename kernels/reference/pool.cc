// Pooling and resampling.

#include "kernels/reference/op.h"

namespace reprise::kernels::reference {
namespace {

// One pixel of x under one window of y; `position` counts the window row by row.
struct Cell {
  Dim x, y, position;
};

// Calls f(cell) for every pixel of x (N,C,H,W) inside of every window of y (N,C,P,Q), in window
// order.
template <class F>
void for_each_cell(const graph::Pool2dAttributes& a, const Shape& x, const Shape& y, F&& f) {
  for (Dim image = 0; image < y[0] * y[1]; ++image)
    for (Dim p = 0; p < y[2]; ++p)
      for (Dim q = 0; q < y[3]; ++q)
        for (Dim i = 0; i < a.kernel[0]; ++i)
          for (Dim j = 0; j < a.kernel[1]; ++j) {
            const Dim row = p * a.stride[0] - a.padding[0] + i;
            const Dim column = q * a.stride[1] - a.padding[1] + j;
            if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
            f(Cell{(image * x[2] + row) * x[3] + column, (image * y[2] + p) * y[3] + q,
                   i * a.kernel[1] + j});
          }
}

// How many pixels the average of output `y_index` is over.
double window_size(const graph::Pool2dAttributes& a, const Shape& x, const Shape& y, Dim y_index) {
  if (a.count_padding) return static_cast<double>(a.kernel[0] * a.kernel[1]);
  double size = 1;
  const Dim at[2] = {y_index / y[3] % y[2], y_index % y[3]};
  for (std::size_t i = 0; i < 2; ++i) {
    const Dim begin = at[i] * a.stride[i] - a.padding[i];
    const Dim end = begin + a.kernel[i];
    size *= static_cast<double>((end < x[i + 2] ? end : x[i + 2]) - (begin > 0 ? begin : 0));
  }
  return size;
}

}  // namespace

void max_pool(const Op& op) {
  constexpr std::uint8_t kNone = 255;
  std::uint8_t* indices = op.out_u8(1);
  // Position 255 is the last of a 16x16 window, and never the first that lies in the image: padding
  // is at most half of the window.
  for (Dim i = 0; i < op.out_count(); ++i) indices[i] = kNone;
  for_each_cell(op.attributes<graph::Pool2dAttributes>(), op.in_shape(0), op.out_shape(),
                [&](const Cell& cell) {
                  if (indices[cell.y] != kNone && !(op.in(0)[cell.x] > op.out()[cell.y])) return;
                  op.out()[cell.y] = op.in(0)[cell.x];
                  indices[cell.y] = static_cast<std::uint8_t>(cell.position);
                });
}

void max_pool_grad(const Op& op) {
  op.start_sum();
  for_each_cell(op.attributes<graph::Pool2dAttributes>(), op.out_shape(), op.in_shape(0),
                [&](const Cell& cell) {
                  if (op.in_u8(1)[cell.y] == cell.position) op.out()[cell.x] += op.in(0)[cell.y];
                });
}

void avg_pool(const Op& op) {
  const auto& a = op.attributes<graph::Pool2dAttributes>();
  op.start_sum();
  for_each_cell(a, op.in_shape(0), op.out_shape(),
                [&](const Cell& cell) { op.out()[cell.y] += op.in(0)[cell.x]; });
  for (Dim i = 0; i < op.out_count(); ++i)
    op.out()[i] /= window_size(a, op.in_shape(0), op.out_shape(), i);
}

void avg_pool_grad(const Op& op) {
  const auto& a = op.attributes<graph::Pool2dAttributes>();
  op.start_sum();
  for_each_cell(a, op.out_shape(), op.in_shape(0), [&](const Cell& cell) {
    op.out()[cell.x] += op.in(0)[cell.y] / window_size(a, op.out_shape(), op.in_shape(0), cell.y);
  });
}

void global_avg_pool(const Op& op) {
  const Dim pixels = op.in_shape(0)[2] * op.in_shape(0)[3];
  op.start_sum();
  for (Dim i = 0; i < op.in_count(0); ++i) op.out()[i / pixels] += op.in(0)[i];
  for (Dim i = 0; i < op.out_count(); ++i) op.out()[i] /= static_cast<double>(pixels);
}

void global_avg_pool_grad(const Op& op) {
  const Dim pixels = op.out_shape()[2] * op.out_shape()[3];
  for (Dim i = 0; i < op.out_count(); ++i)
    op.out()[i] = op.in(0)[i / pixels] / static_cast<double>(pixels);
}

namespace {

// The pixel of the small image behind pixel i of the large one of this shape.
Dim source_pixel(const Shape& large, Dim factor, Dim i) {
  const Dim column = i % large[3] / factor;
  const Dim row = i / large[3] % large[2] / factor;
  return (i / (large[2] * large[3]) * (large[2] / factor) + row) * (large[3] / factor) + column;
}

}  // namespace

void upsample(const Op& op) {
  const Dim factor = op.attributes<graph::UpsampleAttributes>().factor;
  for (Dim i = 0; i < op.out_count(); ++i)
    op.out()[i] = op.in(0)[source_pixel(op.out_shape(), factor, i)];
}

void upsample_grad(const Op& op) {
  const Dim factor = op.attributes<graph::UpsampleAttributes>().factor;
  op.start_sum();
  for (Dim i = 0; i < op.in_count(0); ++i)
    op.out()[source_pixel(op.in_shape(0), factor, i)] += op.in(0)[i];
}

}  // namespace reprise::kernels::reference
