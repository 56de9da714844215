// Ops that move, repeat or sum elements.

#include <algorithm>
#include <cstring>

#include "kernels/reference/op.h"

namespace reprise::kernels::reference {
namespace {

Dim product(const Shape& shape, std::size_t begin, std::size_t end) {
  Dim result = 1;
  for (std::size_t i = begin; i < end; ++i) result *= shape[i];
  return result;
}

// Copies `part`, whose axis covers [begin, begin + size) of the axis of `whole`. One of the two is
// the output.
template <class T, class F>
void for_each_part(const Shape& whole, const Shape& part, std::size_t axis, Dim begin,
                   T* whole_data, F&& f) {
  const Dim inner = product(whole, axis + 1, whole.size());
  const Dim outer = product(whole, 0, axis);
  for (Dim o = 0; o < outer; ++o)
    for (Dim a = 0; a < part[axis]; ++a)
      for (Dim i = 0; i < inner; ++i) {
        f(whole_data[(o * whole[axis] + begin + a) * inner + i], (o * part[axis] + a) * inner + i);
      }
}

template <class T>
void concat_as(const Op& op, const auto& input, T* out) {
  const auto axis = static_cast<std::size_t>(op.attributes<graph::AxisAttributes>().axis);
  Dim begin = 0;
  for (std::size_t k = 0; k < op.inputs(); ++k) {
    const T* part = input(k);
    for_each_part(op.out_shape(), op.in_shape(k), axis, begin, out,
                  [&](T& whole, Dim i) { whole = part[i]; });
    begin += op.in_shape(k)[axis];
  }
}

template <class T>
void slice_as(const Op& op, const T* in, T* out) {
  const auto& a = op.attributes<graph::AxisAttributes>();
  for_each_part(op.in_shape(0), op.out_shape(), static_cast<std::size_t>(a.axis), a.begin, in,
                [&](const T& whole, Dim i) { out[i] = whole; });
}

// Index of the element of `small` (axes aligned at the right, 1 repeats) behind element i of
// `large`.
Dim broadcast_index(const Shape& small, const Shape& large, Dim i) {
  Dim index = 0;
  Dim stride = 1;
  for (std::size_t k = 0; k < small.size(); ++k) {
    const Dim size = large[large.size() - 1 - k];
    const Dim own = small[small.size() - 1 - k];
    if (own != 1) index += i % size * stride;
    stride *= own;
    i /= size;
  }
  return index;
}

void sum_into(const Op& op) {
  const auto& axes = op.attributes<graph::ReduceAttributes>().axes;
  Shape kept = op.in_shape(0);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (axes.empty() || std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i)))
      kept[i] = 1;
  }
  op.start_sum();
  for (Dim i = 0; i < op.in_count(0); ++i)
    op.out()[broadcast_index(kept, op.in_shape(0), i)] += op.in(0)[i];
}

}  // namespace

// reshape (where something runs it at all) and reorder: the one layout here is row-major.
void copy(const Op& op) {
  if (op.in_is_float(0)) {
    std::memmove(op.out(), op.in(0), static_cast<std::size_t>(op.in_count(0)) * sizeof(double));
  } else {
    std::memmove(op.out_int(), op.in_int(0),
                 static_cast<std::size_t>(op.in_count(0)) * sizeof(std::int32_t));
  }
}

void concat(const Op& op) {
  if (op.in_is_float(0)) {
    concat_as(
        op, [&](std::size_t k) { return op.in(k); }, op.out());
  } else {
    concat_as(
        op, [&](std::size_t k) { return op.in_int(k); }, op.out_int());
  }
}

void slice(const Op& op) {
  if (op.in_is_float(0)) {
    slice_as(op, op.in(0), op.out());
  } else {
    slice_as(op, op.in_int(0), op.out_int());
  }
}

void slice_grad(const Op& op) {
  const auto& a = op.attributes<graph::AxisAttributes>();
  op.start_sum();
  for_each_part(op.out_shape(), op.in_shape(0), static_cast<std::size_t>(a.axis), a.begin, op.out(),
                [&](double& whole, Dim i) { whole = op.in(0)[i]; });
}

void broadcast(const Op& op) {
  for (Dim i = 0; i < op.out_count(); ++i) {
    op.out()[i] = op.in(0)[broadcast_index(op.in_shape(0), op.out_shape(), i)];
  }
}

void reduce_sum(const Op& op) {
  sum_into(op);
}

void reduce_mean(const Op& op) {
  sum_into(op);
  const double count =
      static_cast<double>(op.in_count(0)) / static_cast<double>(std::max<Dim>(1, op.out_count()));
  for (Dim i = 0; i < op.out_count(); ++i) op.out()[i] /= count;
}

void fill(const Op& op) {
  std::fill_n(op.out(), op.out_count(), op.attributes<graph::ShapeAttributes>().value);
}

}  // namespace reprise::kernels::reference
