// Batch norm (statistics per channel, axis 1) and layer norm (statistics per row). Both are one
// computation over groups of elements that share a mean.

#include <cmath>
#include <vector>

#include "kernels/reference/op.h"

namespace reprise::kernels::reference {
namespace {

// How element i of x belongs to a group of statistics and to a pair (gamma, beta).
struct Grouping {
  Dim inner = 1;  // elements behind axis 1 (batch norm) or in a row (layer norm)
  Dim channels = 1;
  bool layer = false;

  [[nodiscard]] Dim group(Dim i) const { return layer ? i / inner : i / inner % channels; }
  [[nodiscard]] Dim parameter(Dim i) const { return layer ? i % inner : i / inner % channels; }
};

Grouping by_channel(const Shape& x) {
  Grouping g{.inner = 1, .channels = x[1]};
  for (std::size_t i = 2; i < x.size(); ++i) g.inner *= x[i];
  return g;
}

Grouping by_row(const Shape& x) {
  return {.inner = x.back(), .channels = 1, .layer = true};
}

void normalise(const Op& op, const Grouping& g) {
  const Dim count = op.in_count(0);
  const Dim groups = op.out_count(1);
  const double per_group =
      groups == 0 ? 1.0 : static_cast<double>(count) / static_cast<double>(groups);
  const double epsilon = op.attributes<graph::NormAttributes>().epsilon;
  double* mean = op.out(1);
  double* var = op.out(2);
  for (Dim k = 0; k < groups; ++k) mean[k] = var[k] = 0.0;
  for (Dim i = 0; i < count; ++i) mean[g.group(i)] += op.in(0)[i] / per_group;
  for (Dim i = 0; i < count; ++i) {
    const double centred = op.in(0)[i] - mean[g.group(i)];
    var[g.group(i)] += centred * centred / per_group;
  }
  for (Dim i = 0; i < count; ++i) {
    const double scaled = (op.in(0)[i] - mean[g.group(i)]) / std::sqrt(var[g.group(i)] + epsilon);
    op.out(0)[i] = scaled * op.in(1)[g.parameter(i)] + op.in(2)[g.parameter(i)];
  }
}

// dx = (g - mean(g) - xhat mean(g xhat)) / sqrt(var + eps) with g = gamma dy, means over the group.
void normalise_grad(const Op& op, const Grouping& g) {
  const Dim count = op.in_count(0);
  const Dim groups = op.in_count(2);
  const double per_group =
      groups == 0 ? 1.0 : static_cast<double>(count) / static_cast<double>(groups);
  const double epsilon = op.attributes<graph::NormAttributes>().epsilon;
  const auto inverse = [&](Dim i) { return 1.0 / std::sqrt(op.in(3)[g.group(i)] + epsilon); };
  const auto scaled = [&](Dim i) { return (op.in(0)[i] - op.in(2)[g.group(i)]) * inverse(i); };
  std::vector<double> mean_g(static_cast<std::size_t>(groups));
  std::vector<double> mean_gx(static_cast<std::size_t>(groups));
  for (std::size_t output : {1U, 2U}) {
    for (Dim k = 0; k < op.out_count(output); ++k) op.out(output)[k] = 0.0;
  }
  for (Dim i = 0; i < count; ++i) {
    const double dy = op.in(1)[i];
    const auto k = static_cast<std::size_t>(g.group(i));
    op.out(1)[g.parameter(i)] += dy * scaled(i);
    op.out(2)[g.parameter(i)] += dy;
    mean_g[k] += dy * op.in(4)[g.parameter(i)] / per_group;
    mean_gx[k] += dy * op.in(4)[g.parameter(i)] * scaled(i) / per_group;
  }
  for (Dim i = 0; i < count; ++i) {
    const auto k = static_cast<std::size_t>(g.group(i));
    op.out(0)[i] =
        (op.in(1)[i] * op.in(4)[g.parameter(i)] - mean_g[k] - scaled(i) * mean_gx[k]) * inverse(i);
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
  for (Dim i = 0; i < op.in_count(0); ++i) {
    const Dim k = g.group(i);
    op.out()[i] =
        (op.in(0)[i] - op.in(3)[k]) / std::sqrt(op.in(4)[k] + epsilon) * op.in(1)[k] + op.in(2)[k];
  }
}

void batch_norm_update(const Op& op) {
  const auto& a = op.attributes<graph::RunningUpdateAttributes>();
  const auto count = static_cast<double>(a.count);
  const double correction = a.unbiased ? count / (count - 1.0) : 1.0;
  for (Dim k = 0; k < op.out_count(); ++k) {
    op.out(0)[k] = (1.0 - a.rate) * op.in(0)[k] + a.rate * op.in(2)[k];
    op.out(1)[k] = (1.0 - a.rate) * op.in(1)[k] + a.rate * op.in(3)[k] * correction;
  }
}

}  // namespace reprise::kernels::reference
