#pragma once

// One function per op: books and makes the kernel. Letters as in graph/op.h.

#include <memory>

#include "kernels/cuda/booking.h"

namespace reprise::kernels::cuda {

// Dispatches on the op of the booked node. Throws what the functions below throw: Error(kInput)
// naming the node where there is no kernel.
[[nodiscard]] std::unique_ptr<Kernel> plan_kernel(Booking& booking);

// conv.cc
std::unique_ptr<Kernel> plan_conv2d(Booking& b);
std::unique_ptr<Kernel> plan_conv2d_grad_input(Booking& b);
std::unique_ptr<Kernel> plan_conv2d_grad_weight(Booking& b);
// matmul.cc
std::unique_ptr<Kernel> plan_matmul(Booking& b);
std::unique_ptr<Kernel> plan_bias_grad(Booking& b);
// batch_norm.cc
std::unique_ptr<Kernel> plan_batch_norm(Booking& b);
std::unique_ptr<Kernel> plan_batch_norm_grad(Booking& b);
std::unique_ptr<Kernel> plan_batch_norm_inference(Booking& b);
std::unique_ptr<Kernel> plan_batch_norm_update(Booking& b);
// batch_norm_ranks.cc
std::unique_ptr<Kernel> plan_batch_norm_moments(Booking& b);
std::unique_ptr<Kernel> plan_batch_norm_combine(Booking& b);
std::unique_ptr<Kernel> plan_batch_norm_apply(Booking& b);
std::unique_ptr<Kernel> plan_batch_norm_grad_sums(Booking& b);
std::unique_ptr<Kernel> plan_batch_norm_grad_input(Booking& b);
// layer_norm.cc
std::unique_ptr<Kernel> plan_layer_norm(Booking& b);
std::unique_ptr<Kernel> plan_layer_norm_grad(Booking& b);
// pointwise.cc: relu, sigmoid, tanh, gelu and their gradients, add, mul, scale, positive
std::unique_ptr<Kernel> plan_pointwise(Booking& b);
std::unique_ptr<Kernel> plan_cast(Booking& b);
std::unique_ptr<Kernel> plan_dropout(Booking& b);  // dropout.cc; also the gradient
// pool.cc
std::unique_ptr<Kernel> plan_pool(Booking& b);
std::unique_ptr<Kernel> plan_pool_grad(Booking& b);
// resample.cc
std::unique_ptr<Kernel> plan_global_avg_pool(Booking& b);
std::unique_ptr<Kernel> plan_global_avg_pool_grad(Booking& b);
std::unique_ptr<Kernel> plan_upsample(Booking& b);
std::unique_ptr<Kernel> plan_upsample_grad(Booking& b);
// shape_ops.cc
std::unique_ptr<Kernel> plan_reshape(Booking& b);
std::unique_ptr<Kernel> plan_concat(Booking& b);
std::unique_ptr<Kernel> plan_slice(Booking& b);
std::unique_ptr<Kernel> plan_slice_grad(Booking& b);
std::unique_ptr<Kernel> plan_fill(Booking& b);
// reduce.cc
std::unique_ptr<Kernel> plan_broadcast(Booking& b);
std::unique_ptr<Kernel> plan_reduce(Booking& b);
// embedding.cc
std::unique_ptr<Kernel> plan_embedding(Booking& b);
std::unique_ptr<Kernel> plan_embedding_grad(Booking& b);
// lstm.cc
std::unique_ptr<Kernel> plan_lstm(Booking& b);
std::unique_ptr<Kernel> plan_lstm_grad(Booking& b);
// gru.cc
std::unique_ptr<Kernel> plan_gru(Booking& b);
std::unique_ptr<Kernel> plan_gru_grad(Booking& b);
// loss.cc
std::unique_ptr<Kernel> plan_softmax_cross_entropy(Booking& b);
std::unique_ptr<Kernel> plan_softmax_cross_entropy_grad(Booking& b);
std::unique_ptr<Kernel> plan_mean_squared_error(Booking& b);
std::unique_ptr<Kernel> plan_mean_squared_error_grad(Booking& b);
std::unique_ptr<Kernel> plan_correct_count(Booking& b);
// update.cc
std::unique_ptr<Kernel> plan_global_norm(Booking& b);
std::unique_ptr<Kernel> plan_sgd(Booking& b);
std::unique_ptr<Kernel> plan_adam(Booking& b);
std::unique_ptr<Kernel> plan_assign(Booking& b);
std::unique_ptr<Kernel> plan_all_reduce(Booking& b);

}  // namespace reprise::kernels::cuda
