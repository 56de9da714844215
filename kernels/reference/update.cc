// Updates of persistent values, and the norm that clips and guards them.

#include <cmath>
#include <cstring>

#include "kernels/reference/op.h"

namespace reprise::kernels::reference {
namespace {

// What the norm of all gradients, the last input where the attributes ask for it, says of a step.
struct Guard {
  double scale = 1.0;  // of the gradient
  bool skip = false;
};

Guard guard(const Op& op, double clip_norm, bool skip_nonfinite) {
  if (!(clip_norm > 0) && !skip_nonfinite) return {};
  const double norm = op.in(op.inputs() - 1)[0];
  return {.scale = clip_norm > 0 ? std::fmin(1.0, clip_norm / (norm + 1e-6)) : 1.0,
          .skip = skip_nonfinite && !std::isfinite(norm)};
}

// Outputs of a skipped step: persistent value `input` as it was.
void keep(const Op& op, std::size_t input, std::size_t output) {
  const Dim bytes = op.in_count(input) * op.in_element_bytes(input);
  std::memmove(op.out_bytes(output), op.in_bytes(input), static_cast<std::size_t>(bytes));
}

}  // namespace

void global_norm(const Op& op) {
  double squares = 0;
  for (std::size_t i = 0; i < op.inputs(); ++i) {
    for (Dim j = 0; j < op.in_count(i); ++j) squares += op.in(i)[j] * op.in(i)[j];
  }
  op.out()[0] = std::sqrt(squares);
}

// SGD with momentum as PyTorch has it (dampening 0).
void sgd(const Op& op) {
  const auto& a = op.attributes<graph::SgdAttributes>();
  const double rate = a.rate.at(op.context().step);
  const bool with_momentum = op.inputs() > (graph::takes_norm(a) ? 3U : 2U);
  const Guard guarded = guard(op, a.clip_norm, a.skip_nonfinite);
  if (guarded.skip) {
    keep(op, 0, 0);
    if (with_momentum) keep(op, 2, 1);
    return;
  }
  for (Dim i = 0; i < op.out_count(); ++i) {
    double step = guarded.scale * op.in(1)[i] + a.weight_decay * op.in(0)[i];
    if (with_momentum) {
      const double buffer = a.momentum * op.in(2)[i] + step;
      op.out(1)[i] = buffer;
      step = a.nesterov ? step + a.momentum * buffer : buffer;
    }
    op.out(0)[i] = op.in(0)[i] - rate * step;
  }
}

// Adam (Kingma and Ba 2015), and AdamW (Loshchilov and Hutter 2019) when decoupled.
void adam(const Op& op) {
  const auto& a = op.attributes<graph::AdamAttributes>();
  const double rate = a.rate.at(op.context().step);
  const auto t = static_cast<double>(op.context().step + 1);
  const double correction1 = 1.0 - std::pow(a.beta1, t);
  const double correction2 = 1.0 - std::pow(a.beta2, t);
  const Guard guarded = guard(op, a.clip_norm, a.skip_nonfinite);
  if (guarded.skip) {
    for (const std::size_t state : {0U, 1U, 2U}) keep(op, state == 0 ? 0 : state + 1, state);
    return;
  }
  for (Dim i = 0; i < op.out_count(); ++i) {
    const double parameter = op.in(0)[i];
    const double gradient =
        guarded.scale * op.in(1)[i] + (a.decoupled ? 0.0 : a.weight_decay * parameter);
    const double m = a.beta1 * op.in(2)[i] + (1.0 - a.beta1) * gradient;
    const double v = a.beta2 * op.in(3)[i] + (1.0 - a.beta2) * gradient * gradient;
    const double decay = a.decoupled ? rate * a.weight_decay * parameter : 0.0;
    op.out(1)[i] = m;
    op.out(2)[i] = v;
    op.out(0)[i] =
        parameter - decay - rate * (m / correction1) / (std::sqrt(v / correction2) + a.epsilon);
  }
}

void assign(const Op& op) {
  const bool skip = op.inputs() == 3 && !std::isfinite(op.in(2)[0]);
  keep(op, skip ? 0 : 1, 0);
}

}  // namespace reprise::kernels::reference
