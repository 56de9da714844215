// Batch norm over ranks (graph/synchronise.h). "parts" says which rank this is and how many items
// each has; rows of x behind the own items are padding.

#include <algorithm>
#include <cmath>

#include "kernels/reference/op.h"

namespace reprise::kernels::reference {
namespace {

struct Own {
  Dim rank, items;
};

// What "parts", input `i`, says of this rank; `rows` are those of x.
Own own_part(const Op& op, std::size_t i, Dim rows) {
  const std::int32_t* parts = op.in_int(i);
  const Dim ranks = op.in_count(i) - 1;
  if (parts[0] < 0 || parts[0] >= ranks) throw op.out_of_range(i, 0, parts[0], ranks);
  const Dim items = parts[1 + parts[0]];
  if (items < 0 || items > rows) throw op.out_of_range(i, 1 + parts[0], items, rows + 1);
  return {parts[0], items};
}

// x[N,C,...] channel by channel: f(index) for each element of the items.
struct Channels {
  Dim channels, inner;
  Own own;
  Dim rows;

  Channels(const Op& op, std::size_t parts)
      : channels(op.in_shape(0)[1]),
        inner(op.in_count(0) / op.in_shape(0)[0] / op.in_shape(0)[1]),
        own(own_part(op, parts, op.in_shape(0)[0])),
        rows(op.in_shape(0)[0]) {}

  template <class F>
  void each(Dim channel, F&& f) const {
    for (Dim n = 0; n < own.items; ++n) {
      for (Dim j = 0; j < inner; ++j) f((n * channels + channel) * inner + j);
    }
  }
  void clear_padding(double* y) const {
    std::fill(y + own.items * channels * inner, y + rows * channels * inner, 0.0);
  }
};

double inverse_deviation(const Op& op, double variance) {
  return 1.0 / std::sqrt(variance + op.attributes<graph::NormAttributes>().epsilon);
}

}  // namespace

// x parts => moments[D,2,C]
void batch_norm_moments(const Op& op) {
  const Channels c(op, 1);
  std::fill_n(op.out(), op.out_count(), 0.0);
  if (c.own.items == 0) return;
  const auto count = static_cast<double>(c.own.items * c.inner);
  double* mean = op.out() + 2 * c.own.rank * c.channels;
  double* variance = mean + c.channels;
  for (Dim k = 0; k < c.channels; ++k) {
    c.each(k, [&](Dim i) { mean[k] += op.in(0)[i] / count; });
    c.each(k, [&](Dim i) {
      const double centred = op.in(0)[i] - mean[k];
      variance[k] += centred * centred / count;
    });
  }
}

// moments parts => mean var sample_var
void batch_norm_combine(const Op& op) {
  const Dim ranks = op.in_shape(0)[0];
  const Dim channels = op.in_shape(0)[2];
  const std::int32_t* items = op.in_int(1) + 1;
  Dim all = 0;
  for (Dim r = 0; r < ranks; ++r) {
    if (items[r] < 0) throw op.out_of_range(1, 1 + r, items[r], std::int64_t{1} << 31);
    all += items[r];
  }
  const Dim count = all * op.attributes<graph::CombineAttributes>().values;
  if (count <= 1) {
    throw base::input_error(
        "node '{}': the ranks have {} values per channel together, training needs more than one; "
        "use a larger batch or image",
        op.name(), count);
  }
  for (Dim k = 0; k < channels; ++k) {
    double n = 0.0, mean = 0.0, squares = 0.0;  // of the ranks so far, in items
    for (Dim r = 0; r < ranks; ++r) {
      if (items[r] == 0) continue;
      const auto more = static_cast<double>(items[r]);
      const double delta = op.in(0)[2 * r * channels + k] - mean;
      mean += delta * more / (n + more);
      squares +=
          more * op.in(0)[(2 * r + 1) * channels + k] + delta * delta * n * more / (n + more);
      n += more;
    }
    op.out(0)[k] = mean;
    op.out(1)[k] = squares / n;
    op.out(2)[k] = squares / n * static_cast<double>(count) / static_cast<double>(count - 1);
  }
}

// x gamma beta mean var parts => y
void batch_norm_apply(const Op& op) {
  const Channels c(op, 5);
  for (Dim k = 0; k < c.channels; ++k) {
    const double inverse = inverse_deviation(op, op.in(4)[k]);
    c.each(k, [&](Dim i) {
      op.out()[i] = (op.in(0)[i] - op.in(3)[k]) * inverse * op.in(1)[k] + op.in(2)[k];
    });
  }
  c.clear_padding(op.out());
}

// x dy mean var parts => sums[2,C]: of dy, and of dy xhat
void batch_norm_grad_sums(const Op& op) {
  const Channels c(op, 4);
  std::fill_n(op.out(), op.out_count(), 0.0);
  for (Dim k = 0; k < c.channels; ++k) {
    const double inverse = inverse_deviation(op, op.in(3)[k]);
    c.each(k, [&](Dim i) {
      op.out()[k] += op.in(1)[i];
      op.out()[c.channels + k] += op.in(1)[i] * (op.in(0)[i] - op.in(2)[k]) * inverse;
    });
  }
}

// x dy mean var gamma sums parts => dx dgamma dbeta. With n values in the channel over all ranks:
//   dx = gamma / deviation (dy - sum(dy) / n - xhat sum(dy xhat) / n)
// dx may lie over dy: each element is read before it is written.
void batch_norm_grad_input(const Op& op) {
  const Channels c(op, 6);
  const std::int32_t* items = op.in_int(6) + 1;
  double count = 0.0;
  for (Dim r = 0; r + 1 < op.in_count(6); ++r) count += static_cast<double>(items[r] * c.inner);
  const double* sums = op.in(5);
  for (Dim k = 0; k < c.channels; ++k) {
    const double inverse = inverse_deviation(op, op.in(3)[k]);
    const double of_dy = sums[k];
    const double of_product = sums[c.channels + k];
    c.each(k, [&](Dim i) {
      const double scaled = (op.in(0)[i] - op.in(2)[k]) * inverse;
      op.out(0)[i] =
          op.in(4)[k] * inverse * (op.in(1)[i] - of_dy / count - scaled * of_product / count);
    });
    op.out(1)[k] = of_product;
    op.out(2)[k] = of_dy;
  }
  c.clear_padding(op.out(0));
}

}  // namespace reprise::kernels::reference
