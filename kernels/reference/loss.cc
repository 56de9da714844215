// Losses, metrics and updates of persistent values.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/reference/op.h"

namespace reprise::kernels::reference {
namespace {

// Labels of a classification; `counted` is false for ignored ones, an error for those out of range.
struct Labels {
  explicit Labels(const Op& op)
      : op_(op),
        rows(op.in_shape(0)[0]),
        classes(op.in_shape(0)[1]),
        attributes(op.attributes<graph::LossAttributes>()) {
    for (Dim r = 0; r < rows; ++r) total += counted(r) ? 1.0 : 0.0;
  }

  [[nodiscard]] Dim label(Dim row) const { return op_.in_int(1)[row]; }
  [[nodiscard]] bool counted(Dim row) const {
    if (label(row) == attributes.ignore_index) return false;
    if (label(row) < 0 || label(row) >= classes)
      throw op_.out_of_range(1, row, label(row), classes);
    return true;
  }
  // What one counted label weighs in the loss; 0 when none counts.
  [[nodiscard]] double weight() const {
    if (attributes.reduction == graph::Reduction::kSum) return 1.0;
    return total > 0 ? 1.0 / total : 0.0;
  }

  const Op& op_;
  Dim rows, classes;
  graph::LossAttributes attributes;
  double total = 0;
};

double log_sum_exp(const double* row, Dim classes) {
  const double largest = *std::max_element(row, row + classes);
  double sum = 0;
  for (Dim k = 0; k < classes; ++k) sum += std::exp(row[k] - largest);
  return largest + std::log(sum);
}

}  // namespace

void softmax_cross_entropy(const Op& op) {
  const Labels labels(op);
  double loss = 0;
  for (Dim r = 0; r < labels.rows; ++r) {
    if (!labels.counted(r)) continue;
    const double* row = op.in(0) + r * labels.classes;
    loss += log_sum_exp(row, labels.classes) - row[labels.label(r)];
  }
  op.out()[0] = loss * labels.weight();
}

void softmax_cross_entropy_grad(const Op& op) {
  const Labels labels(op);
  const double weight = labels.weight() * op.in(2)[0];
  for (Dim r = 0; r < labels.rows; ++r) {
    const double* row = op.in(0) + r * labels.classes;
    double* out = op.out() + r * labels.classes;
    const bool counted = labels.counted(r);
    const double normaliser = log_sum_exp(row, labels.classes);
    for (Dim k = 0; k < labels.classes; ++k) {
      const double probability = std::exp(row[k] - normaliser);
      out[k] = counted ? weight * (probability - (k == labels.label(r) ? 1.0 : 0.0)) : 0.0;
    }
  }
}

void correct_count(const Op& op) {
  const Labels labels(op);
  std::int32_t correct = 0;
  for (Dim r = 0; r < labels.rows; ++r) {
    const double* row = op.in(0) + r * labels.classes;
    const Dim best = std::max_element(row, row + labels.classes) - row;
    if (labels.counted(r) && best == labels.label(r)) ++correct;
  }
  op.out_int()[0] = correct;
}

void mean_squared_error(const Op& op) {
  const bool mean = op.attributes<graph::LossAttributes>().reduction == graph::Reduction::kMean;
  double loss = 0;
  for (Dim i = 0; i < op.in_count(0); ++i) {
    const double difference = op.in(0)[i] - op.in(1)[i];
    loss += difference * difference;
  }
  op.out()[0] = mean && op.in_count(0) > 0 ? loss / static_cast<double>(op.in_count(0)) : loss;
}

void mean_squared_error_grad(const Op& op) {
  const bool mean = op.attributes<graph::LossAttributes>().reduction == graph::Reduction::kMean;
  const double weight =
      2.0 * op.in(2)[0] / (mean ? static_cast<double>(std::max<Dim>(1, op.in_count(0))) : 1.0);
  for (Dim i = 0; i < op.out_count(); ++i) op.out()[i] = weight * (op.in(0)[i] - op.in(1)[i]);
}

}  // namespace reprise::kernels::reference
