#include "kernels/cuda/status.h"

#include "base/error.h"

namespace reprise::kernels::cuda {

void fail(cudaError_t status, const char* call) {
  throw base::device_error("{}: {} ({})", call, cudaGetErrorString(status),
                           cudaGetErrorName(status));
}
void fail(cublasStatus_t status, const char* call) {
  throw base::device_error("{}: {} ({})", call, cublasGetStatusString(status),
                           cublasGetStatusName(status));
}
void fail(cudnnStatus_t status, const char* call) {
  throw base::device_error("{}: {}", call, cudnnGetErrorString(status));
}

}  // namespace reprise::kernels::cuda
