#include <algorithm>
#include <array>

#include "kernels/reference/op.h"

namespace reprise::kernels::reference {

void Op::start_sum(std::size_t i) const {
  // A running sum is handed over in place: the output already holds it.
  if (!accumulates()) std::fill_n(out(i), out_count(i), 0.0);
}

Kernel find_kernel(graph::OpKind kind) {
  // In the order of graph::OpKind.
  // clang-format off
  static constexpr std::array<Kernel, graph::kOpKindCount> kTable{
      conv2d, conv2d_grad_input, conv2d_grad_weight, matmul, bias_grad, batch_norm,
      batch_norm_grad, batch_norm_inference, batch_norm_update, batch_norm_moments,
      batch_norm_combine, batch_norm_apply, batch_norm_grad_sums, batch_norm_grad_input,
      layer_norm, layer_norm_grad, relu, relu_grad, sigmoid, sigmoid_grad, tanh, tanh_grad, gelu,
      gelu_grad, add, mul, scale, dropout, dropout, positive, copy, max_pool, max_pool_grad,
      avg_pool, avg_pool_grad, global_avg_pool, global_avg_pool_grad, upsample,
      upsample_grad, copy, concat, slice, slice_grad, broadcast, reduce_sum, reduce_mean,
      fill, embedding, embedding_grad, lstm, lstm_grad, gru, gru_grad,
      softmax_cross_entropy, softmax_cross_entropy_grad, mean_squared_error,
      mean_squared_error_grad, correct_count, global_norm, sgd, adam, assign, copy, copy, copy};
  // clang-format on
  return kTable[static_cast<std::size_t>(kind)];
}

}  // namespace reprise::kernels::reference
