// While the backend grows: ops without a kernel say so. Goes away with the last of them, before the
// backend is built by default.

#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {

__attribute__((weak)) std::unique_ptr<Kernel> plan_conv2d(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_conv2d_grad_input(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_conv2d_grad_weight(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_matmul(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_bias_grad(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_batch_norm(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_batch_norm_grad(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_batch_norm_inference(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_batch_norm_update(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_batch_norm_moments(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_batch_norm_combine(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_batch_norm_apply(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_batch_norm_grad_sums(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_batch_norm_grad_input(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_layer_norm(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_layer_norm_grad(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_pointwise(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_dropout(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_pool(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_pool_grad(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_global_avg_pool(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_global_avg_pool_grad(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_upsample(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_upsample_grad(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_reshape(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_concat(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_slice(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_slice_grad(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_fill(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_broadcast(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_reduce(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_embedding(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_embedding_grad(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_lstm(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_lstm_grad(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_gru(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_gru_grad(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_softmax_cross_entropy(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_softmax_cross_entropy_grad(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_mean_squared_error(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_mean_squared_error_grad(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_correct_count(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_global_norm(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_sgd(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_adam(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_assign(Booking& b) {
  throw b.unsupported("not written yet");
}
__attribute__((weak)) std::unique_ptr<Kernel> plan_all_reduce(Booking& b) {
  throw b.unsupported("not written yet");
}

}  // namespace reprise::kernels::cuda
