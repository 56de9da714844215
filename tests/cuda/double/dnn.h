#pragma once

// cuDNN's handles and descriptors as the double keeps them: f32 or bf16, four dimensions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cudnn.h>
#include <string>
#include <vector>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/library.h"

namespace reprise::test::cuda {

// N C H W (of a filter: K C R S), with where each lies.
struct Layout {
  std::array<std::int64_t, 4> size{};
  std::array<std::int64_t, 4> stride{};
  bool bf16 = false;

  [[nodiscard]] std::int64_t count() const { return size[0] * size[1] * size[2] * size[3]; }
  // Bytes from the first element to the end of the last one.
  [[nodiscard]] std::size_t span() const;
  // Into a plain N C H W array and back.
  [[nodiscard]] std::vector<float> gather(std::byte* data) const;
  // data = alpha * values + beta * data
  void scatter(const std::vector<float>& values, float alpha, float beta, std::byte* data) const;
};
[[nodiscard]] Layout layout_of(cudnnTensorFormat_t format, std::array<std::int64_t, 4> size,
                               cudnnDataType_t type);

struct Convolution {
  int pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int groups = 1;
  bool flipped = false;  // CUDNN_CONVOLUTION
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;

  [[nodiscard]] std::array<std::int64_t, 4> output_size(const Layout& x, const Layout& w) const;
};

// A call with a handle, as api() does it.
[[nodiscard]] bool is_live(cudnnHandle_t handle);
template <class Body>
cudnnStatus_t dnn_api(const char* name, cudnnHandle_t handle, Body body) {
  return api<cudnnStatus_t>(name, [&]() -> cudnnStatus_t {
    return is_live(handle) ? body() : CUDNN_STATUS_NOT_INITIALIZED;
  });
}

}  // namespace reprise::test::cuda

struct cudnnContext {
  cudaStream_t stream = nullptr;
  int device = 0;
};
struct cudnnTensorStruct {
  reprise::test::cuda::Layout layout;
};
struct cudnnFilterStruct {
  reprise::test::cuda::Layout layout;
};
struct cudnnConvolutionStruct {
  reprise::test::cuda::Convolution convolution;
};
