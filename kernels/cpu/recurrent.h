#pragma once

// What recurrent layers share: sizes, and the matrix products around the gates.
//
// The layers are our own loops over oneDNN's matrix product rather than its RNN primitives, whose
// workspace holds about four times the bytes of `saved` and whose products allocate while they run.
// Forward takes w_ih column by column, which backward can read as it lies, and w_hh in whatever
// layout the product likes, since it runs once per time step. `saved` is in a form of our own: all
// gates, then the rest, because oneDNN's fast products only write dense rows.
//
// In bf16 the factors of the products are: x, h, weights, and the gradients of the gates. What the
// products make and what is carried from step to step as c, dh or dc is f32.

#include <memory>

#include "kernels/cpu/booking.h"
#include "kernels/cpu/matmul_primitive.h"
#include "kernels/cpu/storage.h"

namespace reprise::kernels::cpu {

struct RecurrentSizes {
  std::int64_t steps;   // T
  std::int64_t batch;   // B
  std::int64_t input;   // I
  std::int64_t hidden;  // R
  std::int64_t gates;   // G R: columns of the gates
  graph::DType type;    // of the products' factors

  [[nodiscard]] std::int64_t rows() const { return steps * batch; }
  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(rows() * gates) * static_cast<double>(input + hidden);
  }
};

// From x[T,B,I], w_ih[GR,I] and w_hh[GR,R].
[[nodiscard]] RecurrentSizes recurrent_sizes(const graph::Value& x, const graph::Value& w_ih,
                                             const graph::Value& w_hh);

// gates = x w_ih^T + bias for all steps at once; gates = or += h w_hh^T for one step.
class RecurrentForward {
 public:
  // `add`: step() adds to its gates.
  RecurrentForward(const RecurrentSizes& sizes, bool add);
  // Layouts of w_ih (input `w`) and w_hh (the next one).
  void require(Booking& b, std::size_t w) const;
  [[nodiscard]] Bytes scratch_bytes() const;

  // x, h and weights have the sizes' type.
  void inputs(const Run& run, const void* x, const void* w_ih, const float* bias, float* gates,
              void* scratch);
  void step(const Run& run, const void* h, const void* w_hh, float* gates, void* scratch);

 private:
  RecurrentSizes sizes_;
  MatmulPrimitive from_x_;
  MatmulPrimitive from_h_;
};

// From the gradients of the gates to those of inputs, carried state and weights.
class RecurrentBackward {
 public:
  // `add`: step() adds to dh. `accumulate`: weight gradients add to running sums.
  RecurrentBackward(const RecurrentSizes& sizes, bool add, bool accumulate);
  void require(Booking& b, std::size_t w) const;         // w_ih, w_hh
  void require_sums(Booking& b, std::size_t sum) const;  // acc_ih, acc_hh
  void produce(Booking& b, std::size_t dw) const;        // dw_ih, dw_hh
  [[nodiscard]] Bytes scratch_bytes() const;

  // dh[B,R] = dgates[B,GR] w_hh (+ dh)
  void step(const Run& run, const void* dgates, const void* w_hh, float* dh, void* scratch);
  // dx[T,B,I] = dgates w_ih and dw_ih = x^T dgates (+ dw_ih)
  void inputs(const Run& run, const void* x, const void* w_ih, const void* dgates, void* dx,
              float* dw_ih, void* scratch);
  // dw_hh = (dw_hh +) the sum over steps of h_{t-1}^T dgates_t; h_{-1} is h0, then y follows.
  void hidden(const Run& run, const void* h0, const void* y, const void* dgates, float* dw_hh,
              void* scratch);

 private:
  RecurrentSizes sizes_;
  MatmulPrimitive to_h_, to_x_, to_w_ih_, to_w_hh_first_;
  std::unique_ptr<MatmulPrimitive> to_w_hh_rest_;  // null for one step
};

// Output `o` is `saved`; input `i` is one that a layer of this program made.
void produce_saved(Booking& b, std::size_t o);
void require_saved(Booking& b, std::size_t i);

template <class From, class To>
void copy_numbers(const From* from, To* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = stored<To>(load(from[i]));
}

// Makes `sum` the start of the running sum in `out`, where they are not one buffer.
void start_sum(const std::byte* sum, std::byte* out, std::int64_t elements);

}  // namespace reprise::kernels::cpu
