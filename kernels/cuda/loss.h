#pragma once

// Losses on the device.

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

namespace reprise::kernels::cuda {

// logits[rows, classes] and labels[rows]. A label outside of [0, classes) that is not the ignored
// one makes the loss, and its row of the gradient, NaN.
struct LabelledRows {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  std::int64_t ignored = -100;
  bool mean = true;  // over the labels that count, 0 when none does; otherwise the sum
};

// `losses` holds a double for each row.
void launch_softmax_cross_entropy(const LabelledRows& r, const float* logits,
                                  const std::int32_t* labels, float* loss, double* losses,
                                  cudaStream_t stream);
// dlogits may be logits. `counted` holds one number.
void launch_softmax_cross_entropy_grad(const LabelledRows& r, const float* logits,
                                       const std::int32_t* labels, const float* dloss,
                                       float* dlogits, std::int32_t* counted, cudaStream_t stream);
void launch_correct_count(const LabelledRows& r, const float* logits, const std::int32_t* labels,
                          std::int32_t* correct, cudaStream_t stream);

// dprediction = 2 dloss / divisor * (prediction - target); may be in place of prediction.
void launch_mean_squared_error_grad(double divisor, const float* prediction, const float* target,
                                    const float* dloss, float* dprediction, std::int64_t count,
                                    cudaStream_t stream);

}  // namespace reprise::kernels::cuda
