#pragma once

// Layer normalisation on the device: x[rows, D], statistics per row.

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

#include "kernels/cuda/element.h"

namespace reprise::kernels::cuda {

struct LayerNormSizes {
  std::int64_t rows = 0, columns = 0;
  double epsilon = 1e-5;
  // The rows are dealt out to this many parts for dgamma and dbeta, added up in order.
  std::int64_t parts = 1;

  LayerNormSizes(std::int64_t rows, std::int64_t columns, double epsilon);
  // Of the parts of dgamma and dbeta.
  [[nodiscard]] std::size_t scratch_bytes() const {
    return static_cast<std::size_t>(2 * parts * columns) * sizeof(double);
  }
};

// y may be x. T: element.h.
template <class T>
void launch_layer_norm(const LayerNormSizes& s, const T* x, const float* gamma, const float* beta,
                       T* y, float* mean, float* var, cudaStream_t stream);
// dx may be dy.
template <class T>
void launch_layer_norm_grad(const LayerNormSizes& s, const T* x, const T* dy, const float* mean,
                            const float* var, const float* gamma, T* dx, float* dgamma,
                            float* dbeta, double* partial, cudaStream_t stream);

}  // namespace reprise::kernels::cuda
