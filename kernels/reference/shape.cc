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

// Calls f(whole, part, count) for each run of `count` elements that lie side by side both in
// `whole` and in `part`, which covers [begin, begin + its size) of the axis; the first two are
// indices.
template <class F>
void for_each_run(const Shape& whole, const Shape& part, std::size_t axis, Dim begin, F&& f) {
  const Dim inner = product(whole, axis + 1, whole.size());
  const Dim outer = product(whole, 0, axis);
  for (Dim o = 0; o < outer; ++o)
    f((o * whole[axis] + begin) * inner, o * part[axis] * inner, part[axis] * inner);
}

void copy_elements(const Op& op, std::size_t input, Dim from, Dim to, Dim count) {
  const Dim bytes = op.in_element_bytes(input);
  std::memmove(op.out_bytes() + to * bytes, op.in_bytes(input) + from * bytes,
               static_cast<std::size_t>(count * bytes));
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

// Index of the sum that element i of x adds to.
Dim reduced_index(const graph::Ints& axes, const Shape& x, Dim i) {
  Dim index = 0;
  Dim stride = 1;
  for (std::size_t k = x.size(); k-- > 0;) {
    const Dim at = i % x[k];
    i /= x[k];
    if (axes.empty() || std::binary_search(axes.begin(), axes.end(), static_cast<Dim>(k))) continue;
    index += at * stride;
    stride *= x[k];
  }
  return index;
}

void sum_into(const Op& op) {
  const auto& axes = op.attributes<graph::ReduceAttributes>().axes;
  op.start_sum();
  for (Dim i = 0; i < op.in_count(0); ++i)
    op.out()[reduced_index(axes, op.in_shape(0), i)] += op.in(0)[i];
}

}  // namespace

// reshape (where something runs it at all) and reorder: the one layout here is row-major. A cast
// copies too: whatever is written to a bf16 value is rounded afterwards.
void copy(const Op& op) {
  copy_elements(op, 0, 0, 0, op.in_count(0));
}

void concat(const Op& op) {
  const auto axis = static_cast<std::size_t>(op.attributes<graph::AxisAttributes>().axis);
  Dim begin = 0;
  for (std::size_t k = 0; k < op.inputs(); ++k) {
    for_each_run(op.out_shape(), op.in_shape(k), axis, begin,
                 [&](Dim whole, Dim part, Dim count) { copy_elements(op, k, part, whole, count); });
    begin += op.in_shape(k)[axis];
  }
}

void slice(const Op& op) {
  const auto& a = op.attributes<graph::AxisAttributes>();
  for_each_run(op.in_shape(0), op.out_shape(), static_cast<std::size_t>(a.axis), a.begin,
               [&](Dim whole, Dim part, Dim count) { copy_elements(op, 0, whole, part, count); });
}

void slice_grad(const Op& op) {
  const auto& a = op.attributes<graph::AxisAttributes>();
  op.start_sum();
  for_each_run(op.out_shape(), op.in_shape(0), static_cast<std::size_t>(a.axis), a.begin,
               [&](Dim whole, Dim part, Dim count) { copy_elements(op, 0, part, whole, count); });
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
