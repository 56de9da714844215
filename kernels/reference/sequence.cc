// Embeddings and recurrent layers. T time steps, B batch, I input, R hidden size; gates lie one
// after the other in blocks of R rows of the weights.

#include <algorithm>
#include <cmath>

#include "kernels/reference/op.h"

namespace reprise::kernels::reference {
namespace {

double logistic(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

// Shapes and operands that both cells share.
struct Layer {
  Dim T, B, I, R;
  const double *x, *h0, *w_ih, *w_hh, *bias;

  // w_ih[row] . x[t, b]
  [[nodiscard]] double from_input(Dim row, Dim t, Dim b) const {
    double sum = 0;
    for (Dim i = 0; i < I; ++i) sum += w_ih[row * I + i] * x[(t * B + b) * I + i];
    return sum;
  }
  // w_hh[row] . h, with h the hidden state of one sample
  [[nodiscard]] double from_hidden(Dim row, const double* h) const {
    double sum = 0;
    for (Dim r = 0; r < R; ++r) sum += w_hh[row * R + r] * h[r];
    return sum;
  }
  [[nodiscard]] const double* hidden_before(const double* y, Dim t, Dim b) const {
    return t == 0 ? h0 + b * R : y + ((t - 1) * B + b) * R;
  }
};

Layer make_layer(const Op& op, std::size_t first_weight) {
  const Shape& x = op.in_shape(0);
  return {.T = x[0],
          .B = x[1],
          .I = x[2],
          .R = op.in_shape(1)[1],
          .x = op.in(0),
          .h0 = op.in(1),
          .w_ih = op.in(first_weight),
          .w_hh = op.in(first_weight + 1),
          .bias = op.in(first_weight + 2)};
}

// Where the gradient of one pre-activation goes: row `row` of the weights, sample b at step t.
struct WeightGradients {
  const Layer& layer;
  double *dx, *dw_ih, *dw_hh;

  void add_input(Dim row, Dim t, Dim b, double gradient) const {
    for (Dim i = 0; i < layer.I; ++i) {
      dx[(t * layer.B + b) * layer.I + i] += gradient * layer.w_ih[row * layer.I + i];
      dw_ih[row * layer.I + i] += gradient * layer.x[(t * layer.B + b) * layer.I + i];
    }
  }
  void add_hidden(Dim row, const double* h, double* dh, double gradient) const {
    for (Dim r = 0; r < layer.R; ++r) {
      dh[r] += gradient * layer.w_hh[row * layer.R + r];
      dw_hh[row * layer.R + r] += gradient * h[r];
    }
  }
};

void copy_last(const Layer& l, const double* sequence, Dim stride, Dim offset, double* last) {
  for (Dim b = 0; b < l.B; ++b)
    for (Dim r = 0; r < l.R; ++r)
      last[b * l.R + r] = sequence[((l.T - 1) * l.B + b) * stride + offset + r];
}

}  // namespace

void embedding(const Op& op) {
  const Dim rows = op.in_shape(0)[0];
  const Dim width = op.in_shape(0)[1];
  for (Dim i = 0; i < op.in_count(1); ++i) {
    const Dim id = op.in_int(1)[i];
    if (id < 0 || id >= rows) throw op.out_of_range(1, i, id, rows);
    std::copy_n(op.in(0) + id * width, width, op.out() + i * width);
  }
}

void embedding_grad(const Op& op) {
  const Dim rows = op.out_shape()[0];
  const Dim width = op.out_shape()[1];
  op.start_sum();
  for (Dim i = 0; i < op.in_count(0); ++i) {
    const Dim id = op.in_int(0)[i];
    if (id < 0 || id >= rows) throw op.out_of_range(0, i, id, rows);
    for (Dim k = 0; k < width; ++k) op.out()[id * width + k] += op.in(1)[i * width + k];
  }
}

// saved[t, b] = i f g o c, each R long.
void lstm(const Op& op) {
  const Layer l = make_layer(op, 3);
  double* y = op.out(0);
  double* saved = op.out(3);
  for (Dim t = 0; t < l.T; ++t)
    for (Dim b = 0; b < l.B; ++b) {
      double* s = saved + (t * l.B + b) * 5 * l.R;
      const double* h = l.hidden_before(y, t, b);
      const double* c =
          t == 0 ? op.in(2) + b * l.R : saved + ((t - 1) * l.B + b) * 5 * l.R + 4 * l.R;
      for (Dim row = 0; row < 4 * l.R; ++row) {
        const double sum = l.from_input(row, t, b) + l.from_hidden(row, h) + l.bias[row];
        s[row] = row / l.R == 2 ? std::tanh(sum) : logistic(sum);
      }
      for (Dim r = 0; r < l.R; ++r) {
        s[4 * l.R + r] = s[l.R + r] * c[r] + s[r] * s[2 * l.R + r];
        y[(t * l.B + b) * l.R + r] = s[3 * l.R + r] * std::tanh(s[4 * l.R + r]);
      }
    }
  copy_last(l, y, l.R, 0, op.out(1));
  copy_last(l, saved, 5 * l.R, 4 * l.R, op.out(2));
}

void lstm_grad(const Op& op) {
  const Layer l = make_layer(op, 3);
  const double *c0 = op.in(2), *y = op.in(6), *saved = op.in(9), *dy = op.in(10);
  std::fill_n(op.out(0), op.out_count(0), 0.0);
  for (std::size_t i = 3; i < 6; ++i) op.start_sum(i);
  const WeightGradients into{l, op.out(0), op.out(3), op.out(4)};
  double *dh = op.workspace_row(0, l.R), *dc = op.workspace_row(1, l.R);
  double* dh_before = op.workspace_row(2, l.R);
  for (Dim b = 0; b < l.B; ++b) {
    std::copy_n(op.in(11) + b * l.R, l.R, dh);
    std::copy_n(op.in(12) + b * l.R, l.R, dc);
    for (Dim t = l.T - 1; t >= 0; --t) {
      const double* s = saved + (t * l.B + b) * 5 * l.R;
      const double* h = l.hidden_before(y, t, b);
      const double* c = t == 0 ? c0 + b * l.R : saved + ((t - 1) * l.B + b) * 5 * l.R + 4 * l.R;
      std::fill_n(dh_before, l.R, 0.0);
      for (Dim r = 0; r < l.R; ++r) {
        const double i = s[r], f = s[l.R + r], g = s[2 * l.R + r], o = s[3 * l.R + r];
        const double squashed = std::tanh(s[4 * l.R + r]);
        const double dout = dh[r] + dy[(t * l.B + b) * l.R + r];
        const double dcell = dc[r] + dout * o * (1.0 - squashed * squashed);
        const double gates[4] = {dcell * g * i * (1.0 - i), dcell * c[r] * f * (1.0 - f),
                                 dcell * i * (1.0 - g * g), dout * squashed * o * (1.0 - o)};
        dc[r] = dcell * f;
        for (Dim gate = 0; gate < 4; ++gate) {
          const Dim row = gate * l.R + r;
          op.out(5)[row] += gates[gate];
          into.add_input(row, t, b, gates[gate]);
          into.add_hidden(row, h, dh_before, gates[gate]);
        }
      }
      std::copy_n(dh_before, l.R, dh);
    }
    std::copy_n(dh, l.R, op.out(1) + b * l.R);
    std::copy_n(dc, l.R, op.out(2) + b * l.R);
  }
}

// saved[t, b] = u r n q, each R long, with q = U_n h + b_nh.
void gru(const Op& op) {
  const Layer l = make_layer(op, 2);
  double* y = op.out(0);
  for (Dim t = 0; t < l.T; ++t)
    for (Dim b = 0; b < l.B; ++b) {
      double* s = op.out(2) + (t * l.B + b) * 4 * l.R;
      const double* h = l.hidden_before(y, t, b);
      for (Dim k = 0; k < l.R; ++k) {
        const Dim u = k, r = l.R + k, n = 2 * l.R + k, q = 3 * l.R + k;
        s[u] = logistic(l.from_input(u, t, b) + l.from_hidden(u, h) + l.bias[u]);
        s[r] = logistic(l.from_input(r, t, b) + l.from_hidden(r, h) + l.bias[r]);
        s[q] = l.from_hidden(n, h) + l.bias[q];
        s[n] = std::tanh(l.from_input(n, t, b) + l.bias[n] + s[r] * s[q]);
        y[(t * l.B + b) * l.R + k] = (1.0 - s[u]) * s[n] + s[u] * h[k];
      }
    }
  copy_last(l, y, l.R, 0, op.out(1));
}

void gru_grad(const Op& op) {
  const Layer l = make_layer(op, 2);
  const double *y = op.in(5), *saved = op.in(7), *dy = op.in(8);
  std::fill_n(op.out(0), op.out_count(0), 0.0);
  for (std::size_t i = 2; i < 5; ++i) op.start_sum(i);
  const WeightGradients into{l, op.out(0), op.out(2), op.out(3)};
  double* dbias = op.out(4);
  double *dh = op.workspace_row(0, l.R), *dh_before = op.workspace_row(1, l.R);
  for (Dim b = 0; b < l.B; ++b) {
    std::copy_n(op.in(9) + b * l.R, l.R, dh);
    for (Dim t = l.T - 1; t >= 0; --t) {
      const double* s = saved + (t * l.B + b) * 4 * l.R;
      const double* h = l.hidden_before(y, t, b);
      std::fill_n(dh_before, l.R, 0.0);
      for (Dim k = 0; k < l.R; ++k) {
        const Dim u = k, r = l.R + k, n = 2 * l.R + k, q = 3 * l.R + k;
        const double dout = dh[k] + dy[(t * l.B + b) * l.R + k];
        const double dn = dout * (1.0 - s[u]) * (1.0 - s[n] * s[n]);
        const double du = dout * (h[k] - s[n]) * s[u] * (1.0 - s[u]);
        const double dr = dn * s[q] * s[r] * (1.0 - s[r]);
        const double dq = dn * s[r];
        dh_before[k] += dout * s[u];
        dbias[u] += du, dbias[r] += dr, dbias[n] += dn, dbias[q] += dq;
        into.add_input(u, t, b, du), into.add_input(r, t, b, dr), into.add_input(n, t, b, dn);
        into.add_hidden(u, h, dh_before, du);
        into.add_hidden(r, h, dh_before, dr);
        into.add_hidden(n, h, dh_before, dq);
      }
      std::copy_n(dh_before, l.R, dh);
    }
    std::copy_n(dh, l.R, op.out(1) + b * l.R);
  }
}

}  // namespace reprise::kernels::reference
