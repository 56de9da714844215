// Batch norm (statistics per channel, axis 1) and layer norm (statistics per row). Both are one
// computation over groups of elements that share a mean.

#include <algorithm>
#include <cmath>

#include "kernels/reference/op.h"

namespace reprise::kernels::reference {
namespace {

// Element j of a group, and the pair (gamma, beta) that scales it.
struct Grouping {
  Dim groups = 1;
  Dim size = 1;   // elements of a group
  Dim inner = 1;  // batch norm: elements behind axis 1
  bool layer = false;

  [[nodiscard]] Dim element(Dim group, Dim j) const {
    return layer ? group * size + j : (j / inner * groups + group) * inner + j % inner;
  }
  [[nodiscard]] Dim parameter(Dim group, Dim j) const { return layer ? j : group; }
};

Grouping by_channel(const Shape& x) {
  Grouping g{.groups = x[1], .size = elements(x) / x[1]};
  for (std::size_t i = 2; i < x.size(); ++i) g.inner *= x[i];
  return g;
}

Grouping by_row(const Shape& x) {
  return {.groups = elements(x) / x.back(), .size = x.back(), .layer = true};
}

void normalise(const Op& op, const Grouping& g) {
  const double epsilon = op.attributes<graph::NormAttributes>().epsilon;
  const auto size = static_cast<double>(g.size);
  for (Dim k = 0; k < g.groups; ++k) {
    double mean = 0.0;
    for (Dim j = 0; j < g.size; ++j) mean += op.in(0)[g.element(k, j)] / size;
    double var = 0.0;
    for (Dim j = 0; j < g.size; ++j) {
      const double centred = op.in(0)[g.element(k, j)] - mean;
      var += centred * centred / size;
    }
    op.out(1)[k] = mean;
    op.out(2)[k] = var;
    for (Dim j = 0; j < g.size; ++j) {
      const Dim p = g.parameter(k, j);
      const double scaled = (op.in(0)[g.element(k, j)] - mean) / std::sqrt(var + epsilon);
      op.out(0)[g.element(k, j)] = scaled * op.in(1)[p] + op.in(2)[p];
    }
  }
}

// dx = (g - mean(g) - xhat mean(g xhat)) / sqrt(var + eps) with g = gamma dy, means over the group.
// dx may lie over dy: a group reads its own elements of dy, and only those, before it writes them.
void normalise_grad(const Op& op, const Grouping& g) {
  const double epsilon = op.attributes<graph::NormAttributes>().epsilon;
  const auto size = static_cast<double>(g.size);
  for (const std::size_t output : {1U, 2U}) std::fill_n(op.out(output), op.out_count(output), 0.0);
  for (Dim k = 0; k < g.groups; ++k) {
    const double inverse = 1.0 / std::sqrt(op.in(3)[k] + epsilon);
    const auto scaled = [&](Dim j) { return (op.in(0)[g.element(k, j)] - op.in(2)[k]) * inverse; };
    double mean_g = 0.0;
    double mean_gx = 0.0;
    for (Dim j = 0; j < g.size; ++j) {
      const Dim p = g.parameter(k, j);
      const double dy = op.in(1)[g.element(k, j)];
      op.out(1)[p] += dy * scaled(j);
      op.out(2)[p] += dy;
      mean_g += dy * op.in(4)[p] / size;
      mean_gx += dy * op.in(4)[p] * scaled(j) / size;
    }
    for (Dim j = 0; j < g.size; ++j) {
      const double of_y = op.in(1)[g.element(k, j)] * op.in(4)[g.parameter(k, j)];
      op.out(0)[g.element(k, j)] = (of_y - mean_g - scaled(j) * mean_gx) * inverse;
    }
  }
}

}  // namespace

void batch_norm(const Op& op) {
  normalise(op, by_channel(op.in_shape(0)));
}
void batch_norm_grad(const Op& op) {
  normalise_grad(op, by_channel(op.in_shape(0)));
}
void layer_norm(const Op& op) {
  normalise(op, by_row(op.in_shape(0)));
}
void layer_norm_grad(const Op& op) {
  normalise_grad(op, by_row(op.in_shape(0)));
}

void batch_norm_inference(const Op& op) {
  const Grouping g = by_channel(op.in_shape(0));
  const double epsilon = op.attributes<graph::NormAttributes>().epsilon;
  for (Dim k = 0; k < g.groups; ++k) {
    const double inverse = 1.0 / std::sqrt(op.in(4)[k] + epsilon);
    for (Dim j = 0; j < g.size; ++j) {
      const Dim i = g.element(k, j);
      op.out()[i] = (op.in(0)[i] - op.in(3)[k]) * inverse * op.in(1)[k] + op.in(2)[k];
    }
  }
}

void batch_norm_update(const Op& op) {
  const auto& a = op.attributes<graph::RunningUpdateAttributes>();
  const auto count = static_cast<double>(a.count);
  const double correction = a.unbiased ? count / (count - 1.0) : 1.0;
  std::size_t last = op.inputs();
  if (graph::takes_norm(a) && !std::isfinite(op.in(--last)[0])) last = 2;  // takes up no batch
  for (Dim k = 0; k < op.out_count(); ++k) {
    double mean = op.in(0)[k];
    double var = op.in(1)[k];
    for (std::size_t batch = 2; batch < last; batch += 2) {
      mean = (1.0 - a.rate) * mean + a.rate * op.in(batch)[k];
      var = (1.0 - a.rate) * var + a.rate * op.in(batch + 1)[k] * correction;
    }
    op.out(0)[k] = mean;
    op.out(1)[k] = var;
  }
}

}  // namespace reprise::kernels::reference
