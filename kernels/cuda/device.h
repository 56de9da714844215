#pragma once

// One GPU as this process uses it: its streams, library handles and memory.

#include <cstddef>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <memory>
#include <string>

#include "kernels/device_memory.h"

namespace reprise::kernels::cuda {

// How many GPUs this process sees. Error(kDevice) says why none can be used.
[[nodiscard]] int count_devices();

class Device {
 public:
  // Opens GPU `ordinal`. Throws Error(kDevice) saying what there is when there is no such GPU, no
  // driver, or a library is older than the one this was built with.
  Device(int ordinal, bool tensor_floats);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] int ordinal() const { return ordinal_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int multiprocessors() const { return multiprocessors_; }
  [[nodiscard]] bool tensor_floats() const { return tensor_floats_; }
  // What context and library handles took of the device's memory when they were made.
  [[nodiscard]] base::Bytes overhead_bytes() const { return overhead_bytes_; }

  [[nodiscard]] base::Bytes total_bytes() const { return total_bytes_; }
  [[nodiscard]] const std::string& versions() const { return versions_; }

  void make_current() const;  // of the calling thread

  [[nodiscard]] cudaStream_t compute() const { return compute_; }
  [[nodiscard]] cudaStream_t copies() const { return copies_; }
  // Whether tensor cores take bf16: since compute capability 8.0.
  [[nodiscard]] bool has_bf16() const { return generation_ >= 8; }
  [[nodiscard]] int generation() const { return generation_; }  // of its compute capability

  // All work on compute(). f32 products are exact f32 unless tensor_floats(); those of bf16 run on
  // tensor cores and add up in f32, pieces of a long sum too. One handle, set to what it is for.
  [[nodiscard]] cublasHandle_t blas();
  [[nodiscard]] cublasHandle_t blas_of_bf16();
  [[nodiscard]] cudnnHandle_t dnn() const { return dnn_; }

 private:
  void close() noexcept;
  cublasHandle_t blas_in(cublasMath_t mode);

  int ordinal_;
  bool tensor_floats_;
  std::string name_, versions_;
  int multiprocessors_ = 0, generation_ = 0;
  base::Bytes overhead_bytes_ = 0, total_bytes_ = 0;
  cudaStream_t compute_ = nullptr;
  cudaStream_t copies_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  cublasMath_t blas_mode_ = CUBLAS_DEFAULT_MATH;
  cudnnHandle_t dnn_ = nullptr;
};

}  // namespace reprise::kernels::cuda
