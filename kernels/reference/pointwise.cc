// Ops that work element by element. Each element is read before it is written, so all are safe in
// place.

#include <cmath>
#include <numbers>

#include "kernels/reference/op.h"

namespace reprise::kernels::reference {
namespace {

template <class F>
void map(const Op& op, F&& f) {
  for (Dim i = 0; i < op.out_count(); ++i) op.out()[i] = f(op.in(0)[i]);
}

template <class F>
void map2(const Op& op, F&& f) {
  for (Dim i = 0; i < op.out_count(); ++i) op.out()[i] = f(op.in(0)[i], op.in(1)[i]);
}

double normal_cdf(double x) {
  return 0.5 * (1.0 + std::erf(x / std::numbers::sqrt2));
}
double normal_pdf(double x) {
  return std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
}

}  // namespace

void relu(const Op& op) {
  map(op, [](double x) { return x > 0 ? x : 0.0; });
}
void relu_grad(const Op& op) {
  map2(op, [](double y, double dy) { return y > 0 ? dy : 0.0; });
}
void sigmoid(const Op& op) {
  map(op, [](double x) { return 1.0 / (1.0 + std::exp(-x)); });
}
void sigmoid_grad(const Op& op) {
  map2(op, [](double y, double dy) { return dy * y * (1.0 - y); });
}
void tanh(const Op& op) {
  map(op, [](double x) { return std::tanh(x); });
}
void tanh_grad(const Op& op) {
  map2(op, [](double y, double dy) { return dy * (1.0 - y * y); });
}
void gelu(const Op& op) {
  map(op, [](double x) { return x * normal_cdf(x); });
}
void gelu_grad(const Op& op) {
  map2(op, [](double x, double dy) { return dy * (normal_cdf(x) + x * normal_pdf(x)); });
}

void add(const Op& op) {
  if (op.in_is_float(0)) {
    map2(op, [](double a, double b) { return a + b; });
    return;
  }
  for (Dim i = 0; i < op.out_count(); ++i) op.out_int()[i] = op.in_int(0)[i] + op.in_int(1)[i];
}

void mul(const Op& op) {
  map2(op, [](double a, double b) { return a * b; });
}
void scale(const Op& op) {
  map(op,
      [factor = op.attributes<graph::ScaleAttributes>().factor](double x) { return factor * x; });
}

// dropout and its gradient are the same map: both multiply by the mask.
void dropout(const Op& op) {
  const auto& a = op.attributes<graph::DropoutAttributes>();
  const std::uint32_t threshold = graph::dropout_threshold(a.probability);
  for (Dim i = 0; i < op.out_count(); ++i) {
    const bool kept = graph::random_bits(op.context(), static_cast<std::uint32_t>(a.stream),
                                         static_cast<std::uint64_t>(i)) >= threshold;
    op.out()[i] = kept ? op.in(0)[i] / (1.0 - a.probability) : 0.0;
  }
}

void positive(const Op& op) {
  for (Dim i = 0; i < op.out_count(); ++i) op.out_int()[i] = op.in(0)[i] > 0 ? 1 : 0;
}

}  // namespace reprise::kernels::reference
