#pragma once

// Failures of CUDA's libraries as Error(kDevice) that names the call. No heavy header here: .cu
// files include this one.

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>

namespace reprise::kernels::cuda {

[[noreturn]] void fail(cudaError_t status, const char* call);
[[noreturn]] void fail(cublasStatus_t status, const char* call);
[[noreturn]] void fail(cudnnStatus_t status, const char* call);

inline void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) fail(status, call);
}
inline void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(status, call);
}
inline void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) fail(status, call);
}

}  // namespace reprise::kernels::cuda
