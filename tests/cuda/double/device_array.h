#pragma once

// Arrays of device memory for tests.

#include <cstddef>
#include <cuda_runtime.h>
#include <stdexcept>
#include <vector>

#include "tests/cuda/double/operation.h"

namespace reprise::test::cuda {

inline void must(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

// Not freed by itself: reset() takes what is left.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    must(cudaMalloc(&data_, count * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    must(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice));
    must(cudaDeviceSynchronize());
  }
  [[nodiscard]] T* get() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }
  [[nodiscard]] Range read() const { return {data_, bytes(), false}; }
  [[nodiscard]] Range written() const { return {data_, bytes(), true}; }
  // For the work of an operation.
  [[nodiscard]] T* at_run() const { return reinterpret_cast<T*>(storage(data_, bytes())); }
  // Waits for the whole device first.
  [[nodiscard]] std::vector<T> values() const {
    must(cudaDeviceSynchronize());
    std::vector<T> result(count_);
    must(cudaMemcpy(result.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return result;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace reprise::test::cuda
