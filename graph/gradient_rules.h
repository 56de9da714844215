#pragma once

// The gradient rules that the op table names; one file per family (gradient_*.cc). Each appends the
// backward nodes of one forward node through its GradientContext.

namespace reprise::graph {

class GradientContext;

void gradient_conv2d(GradientContext& c);
void gradient_matmul(GradientContext& c);
void gradient_batch_norm(GradientContext& c);
void gradient_batch_norm_apply(GradientContext& c);
void gradient_layer_norm(GradientContext& c);
void gradient_relu(GradientContext& c);
void gradient_sigmoid(GradientContext& c);
void gradient_tanh(GradientContext& c);
void gradient_gelu(GradientContext& c);
void gradient_add(GradientContext& c);
void gradient_mul(GradientContext& c);
void gradient_scale(GradientContext& c);
void gradient_cast(GradientContext& c);
void gradient_dropout(GradientContext& c);
void gradient_max_pool(GradientContext& c);
void gradient_avg_pool(GradientContext& c);
void gradient_global_avg_pool(GradientContext& c);
void gradient_upsample(GradientContext& c);
void gradient_reshape(GradientContext& c);
void gradient_concat(GradientContext& c);
void gradient_slice(GradientContext& c);
void gradient_broadcast(GradientContext& c);
void gradient_reduce_sum(GradientContext& c);
void gradient_reduce_mean(GradientContext& c);
void gradient_embedding(GradientContext& c);
void gradient_lstm(GradientContext& c);
void gradient_gru(GradientContext& c);
void gradient_softmax_cross_entropy(GradientContext& c);
void gradient_mean_squared_error(GradientContext& c);

}  // namespace reprise::graph
