// Convolution and matrix products.

#include "kernels/reference/op.h"

namespace reprise::kernels::reference {
namespace {

// One tap of a convolution: which elements of x, w and y meet.
struct Tap {
  Dim x, w, y;
};

// Calls f(tap) for every product of the convolution of x (N,C,H,W) and w (O,C/G,KH,KW) into y
// (N,O,P,Q).
template <class F>
void for_each_tap(const graph::Conv2dAttributes& a, const Shape& x, const Shape& w, const Shape& y,
                  F&& f) {
  const Dim in_per_group = x[1] / a.groups;
  const Dim out_per_group = w[0] / a.groups;
  for (Dim n = 0; n < y[0]; ++n)
    for (Dim o = 0; o < y[1]; ++o)
      for (Dim p = 0; p < y[2]; ++p)
        for (Dim q = 0; q < y[3]; ++q)
          for (Dim c = 0; c < in_per_group; ++c)
            for (Dim i = 0; i < w[2]; ++i)
              for (Dim j = 0; j < w[3]; ++j) {
                const Dim row = p * a.stride[0] - a.padding[0] + i * a.dilation[0];
                const Dim column = q * a.stride[1] - a.padding[1] + j * a.dilation[1];
                if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
                const Dim channel = o / out_per_group * in_per_group + c;
                f(Tap{((n * x[1] + channel) * x[2] + row) * x[3] + column,
                      ((o * in_per_group + c) * w[2] + i) * w[3] + j,
                      ((n * y[1] + o) * y[2] + p) * y[3] + q});
              }
}

}  // namespace

void conv2d(const Op& op) {
  const Shape& y = op.out_shape();
  for (Dim i = 0; i < op.out_count(); ++i) {
    op.out()[i] = op.inputs() > 2 ? op.in(2)[i / (y[2] * y[3]) % y[1]] : 0.0;
  }
  for_each_tap(op.attributes<graph::Conv2dAttributes>(), op.in_shape(0), op.in_shape(1), y,
               [&](const Tap& t) { op.out()[t.y] += op.in(0)[t.x] * op.in(1)[t.w]; });
}

void conv2d_grad_input(const Op& op) {
  op.start_sum();
  for_each_tap(op.attributes<graph::Conv2dAttributes>(), op.out_shape(), op.in_shape(1),
               op.in_shape(0),
               [&](const Tap& t) { op.out()[t.x] += op.in(0)[t.y] * op.in(1)[t.w]; });
}

void conv2d_grad_weight(const Op& op) {
  op.start_sum();
  for_each_tap(op.attributes<graph::Conv2dAttributes>(), op.in_shape(0), op.out_shape(),
               op.in_shape(1),
               [&](const Tap& t) { op.out()[t.w] += op.in(0)[t.x] * op.in(1)[t.y]; });
}

void matmul(const Op& op) {
  const bool ta = op.attributes<graph::MatmulAttributes>().transpose_a;
  const bool tb = op.attributes<graph::MatmulAttributes>().transpose_b;
  const Shape& left = op.in_shape(0);
  const Shape& y = op.out_shape();
  const std::size_t rank = y.size();
  const Dim rows = y[rank - 2];
  const Dim columns = y[rank - 1];
  const Dim inner = left[rank - (ta ? 2 : 1)];
  const Dim batches = rows * columns == 0 ? 0 : op.out_count() / (rows * columns);
  const bool has_bias = op.inputs() - (op.accumulates() ? 1 : 0) > 2;
  op.start_sum();
  for (Dim n = 0; n < batches; ++n)
    for (Dim r = 0; r < rows; ++r)
      for (Dim c = 0; c < columns; ++c) {
        double sum = has_bias ? op.in(2)[c] : 0.0;
        for (Dim k = 0; k < inner; ++k) {
          const double a = op.in(0)[n * rows * inner + (ta ? k * rows + r : r * inner + k)];
          const double b = op.in(1)[n * inner * columns + (tb ? c * inner + k : k * columns + c)];
          sum += a * b;
        }
        op.out()[(n * rows + r) * columns + c] += sum;
      }
}

void bias_grad(const Op& op) {
  const Shape& dy = op.in_shape(0);
  const auto axis = static_cast<std::size_t>(op.attributes<graph::AxisAttributes>().axis);
  Dim inner = 1;
  for (std::size_t i = axis + 1; i < dy.size(); ++i) inner *= dy[i];
  op.start_sum();
  for (Dim i = 0; i < op.in_count(0); ++i) op.out()[i / inner % dy[axis]] += op.in(0)[i];
}

}  // namespace reprise::kernels::reference
