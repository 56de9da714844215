#pragma once

// What recurrent layers share: sizes, and the matrix products around the gates. The products with
// x and those of the weights' gradients run once for all steps of a node, the products with the
// carried state once for each step.

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/pointwise.h"
#include "kernels/cuda/recurrent_kernels.h"

namespace reprise::kernels::cuda {

struct RecurrentSizes {
  std::int64_t steps = 0;   // T
  std::int64_t batch = 0;   // B
  std::int64_t input = 0;   // I
  std::int64_t hidden = 0;  // R
  std::int64_t gates = 0;   // G R: rows of the weights
  bool bf16 = false;        // x, h, weights, what is saved, and gradients of these but of weights

  [[nodiscard]] StepSizes step() const { return {batch, hidden}; }
  [[nodiscard]] std::int64_t rows() const { return steps * batch; }
  [[nodiscard]] std::int64_t state() const { return batch * hidden; }  // floats of h
  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(rows() * gates) * static_cast<double>(input + hidden);
  }
};

// From x[T,B,I], w_ih[GR,I] and w_hh[GR,R].
[[nodiscard]] inline RecurrentSizes recurrent_sizes(const graph::Value& x, const graph::Value& w_ih,
                                                    const graph::Value& w_hh) {
  return {.steps = x.shape[0],
          .batch = x.shape[1],
          .input = x.shape[2],
          .hidden = w_hh.shape[1],
          .gates = w_ih.shape[0],
          .bf16 = x.dtype == graph::DType::kBF16};
}

// gates[T B, GR] = x w_ih^T, in rows of `stride`.
[[nodiscard]] inline GemmSizes gates_from_x(const RecurrentSizes& s, std::int64_t stride) {
  return {.rows = s.rows(),
          .columns = s.gates,
          .inner = s.input,
          .transpose_b = true,
          .stride_c = stride,
          .bf16_factors = s.bf16};
}
// gates[B, GR] = h w_hh^T, in rows of `stride`.
[[nodiscard]] inline GemmSizes gates_from_h(const RecurrentSizes& s, std::int64_t stride) {
  return {.rows = s.batch,
          .columns = s.gates,
          .inner = s.hidden,
          .transpose_b = true,
          .stride_c = stride,
          .bf16_factors = s.bf16};
}

// The gradient of h on its way from step to step, in f32: in the output where that is f32.
template <class T>
class CarriedGradient {
 public:
  // From input `from`, of the last h, to output `to`, of the first; `at`: of `floats` in the
  // workspace.
  CarriedGradient(const Run& run, std::int64_t floats, std::size_t from, std::size_t to,
                  std::size_t at)
      : run_(run), floats_(floats), from_(from), to_(to), at_(at) {}
  [[nodiscard]] float* begin() const {
    if constexpr (std::is_same_v<T, float>) {
      copy_to_output(run_, from_, to_, floats_ * static_cast<Bytes>(sizeof(float)));
      return run_.output(to_);
    } else {
      launch_cast(run_.input<T>(from_), run_.scratch(at_), floats_, run_.stream());
      return run_.scratch(at_);
    }
  }
  void end() const {
    if constexpr (!std::is_same_v<T, float>) {
      launch_cast(run_.scratch<const float>(at_), run_.output<T>(to_), floats_, run_.stream());
    }
  }

 private:
  const Run& run_;
  std::int64_t floats_;
  std::size_t from_, to_, at_;
};

// The way back, for `gates` of the rows of a weight, whose gradients lie in rows of `stride`.
// d[rows, columns] = dgates w, rounded to what x is stored in, or kept in f32
[[nodiscard]] inline GemmSizes back_through(const RecurrentSizes& s, std::int64_t rows,
                                            std::int64_t gates, std::int64_t columns,
                                            std::int64_t stride, bool rounded) {
  return {.rows = rows,
          .columns = columns,
          .inner = gates,
          .stride_a = stride,
          .bf16_factors = s.bf16,
          .bf16_result = s.bf16 && rounded};
}
// dw[gates, columns] = the sum over rows of dgates^T x
[[nodiscard]] inline GemmSizes weight_grad(const RecurrentSizes& s, std::int64_t rows,
                                           std::int64_t gates, std::int64_t columns,
                                           std::int64_t stride) {
  return {.rows = gates,
          .columns = columns,
          .inner = rows,
          .transpose_a = true,
          .stride_a = stride,
          .bf16_factors = s.bf16};
}

}  // namespace reprise::kernels::cuda
