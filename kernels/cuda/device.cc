#include "kernels/cuda/device.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/cuda/status.h"
#include "kernels/cuda/versions.h"

namespace reprise::kernels::cuda {
namespace {

using base::Bytes;

Bytes free_bytes() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<Bytes>(free);
}

}  // namespace

int count_devices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice ||
      status == cudaErrorSystemDriverMismatch) {
    int driver = 0;
    (void)cudaDriverGetVersion(&driver);
    throw base::device_error(
        "no GPU can be used: {} (the driver speaks CUDA {}.{}, this backend needs {}.{}; 0.0: "
        "there "
        "is no driver)",
        cudaGetErrorString(status), driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
        CUDART_VERSION % 1000 / 10);
  }
  check(status, "cudaGetDeviceCount");
  return count;
}

Device::Device(int ordinal, bool tensor_floats) : ordinal_(ordinal), tensor_floats_(tensor_floats) {
  versions_ = check_versions();
  const int count = count_devices();
  if (ordinal < 0 || ordinal >= count) {
    throw base::device_error("there is no GPU {}: this process sees {}, counted from 0", ordinal,
                             count);
  }
  make_current();
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  name_ = properties.name;
  multiprocessors_ = properties.multiProcessorCount;
  generation_ = properties.major;
  total_bytes_ = static_cast<Bytes>(properties.totalGlobalMem);
  const Bytes before = free_bytes();
  try {
    check(cudaStreamCreateWithFlags(&compute_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cublasCreate(&blas_), "cublasCreate");
    check(cublasSetStream(blas_, compute_), "cublasSetStream");
    (void)blas();
    check(cudnnCreate(&dnn_), "cudnnCreate");
    check(cudnnSetStream(dnn_, compute_), "cudnnSetStream");
  } catch (...) {
    close();
    throw;
  }
  overhead_bytes_ = std::max<Bytes>(0, before - free_bytes());
}

Device::~Device() {
  close();
}

// Errors at the end have nobody to tell.
void Device::close() noexcept {
  (void)cudaSetDevice(ordinal_);
  if (dnn_ != nullptr) (void)cudnnDestroy(dnn_);
  if (blas_ != nullptr) (void)cublasDestroy(blas_);
  if (copies_ != nullptr) (void)cudaStreamDestroy(copies_);
  if (compute_ != nullptr) (void)cudaStreamDestroy(compute_);
}

cublasHandle_t Device::blas() {
  return blas_in(tensor_floats_ ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_PEDANTIC_MATH);
}

cublasHandle_t Device::blas_of_bf16() {
  return blas_in(static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                           CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
}

cublasHandle_t Device::blas_in(cublasMath_t mode) {
  if (mode != blas_mode_) {
    check(cublasSetMathMode(blas_, mode), "cublasSetMathMode");
    blas_mode_ = mode;
  }
  return blas_;
}

void Device::make_current() const {
  check(cudaSetDevice(ordinal_), "cudaSetDevice");
}

}  // namespace reprise::kernels::cuda
