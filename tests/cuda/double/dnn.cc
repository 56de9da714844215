// cuDNN: handles, descriptors, versions.

#include "tests/cuda/double/dnn.h"

#include <fmt/format.h>
#include <set>

#include "tests/cuda/double/faults.h"

using namespace reprise::test::cuda;

namespace reprise::test::cuda {
namespace {

constexpr std::size_t kHandleBytes = std::size_t{32} << 20;  // of the device's memory, made up

std::set<cudnnHandle_t>& live_handles() {
  static auto* const handles = new std::set<cudnnHandle_t>;
  return *handles;
}

bool is_known(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_BFLOAT16;
}

template <class Visit>
void for_each(const Layout& layout, Visit visit) {
  const auto& [n, c, h, w] = layout.size;
  std::size_t plain = 0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < c; ++j)
      for (std::int64_t k = 0; k < h; ++k)
        for (std::int64_t l = 0; l < w; ++l)
          visit(plain++, i * layout.stride[0] + j * layout.stride[1] + k * layout.stride[2] +
                             l * layout.stride[3]);
}

}  // namespace

bool is_live(cudnnHandle_t handle) {
  if (live_handles().count(handle) > 0) return true;
  fault("a call of cuDNN with a handle that is not there");
  return false;
}

void reset_dnn() {
  for (const cudnnHandle_t handle : live_handles()) delete handle;
  live_handles().clear();
}

std::size_t Layout::span() const {
  if (count() == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t d = 0; d < 4; ++d) last += (size[d] - 1) * stride[d];
  return static_cast<std::size_t>(last + 1) * (bf16 ? 2 : sizeof(float));
}

std::vector<float> Layout::gather(std::byte* data) const {
  const Numbers numbers(data, bf16);
  std::vector<float> values(static_cast<std::size_t>(count()));
  for_each(*this, [&](std::size_t plain, std::int64_t at) { values[plain] = numbers.at(at); });
  return values;
}

void Layout::scatter(const std::vector<float>& values, float alpha, float beta,
                     std::byte* data) const {
  const Numbers numbers(data, bf16);
  for_each(*this, [&](std::size_t plain, std::int64_t at) {
    numbers.set(at, alpha * values[plain] + (beta == 0 ? 0 : beta * numbers.at(at)));
  });
}

Layout layout_of(cudnnTensorFormat_t format, std::array<std::int64_t, 4> size,
                 cudnnDataType_t type) {
  const auto& [n, c, h, w] = size;
  const bool bf16 = type == CUDNN_DATA_BFLOAT16;
  if (format == CUDNN_TENSOR_NHWC) return {size, {c * h * w, 1, w * c, c}, bf16};
  return {size, {c * h * w, h * w, w, 1}, bf16};
}

std::array<std::int64_t, 4> Convolution::output_size(const Layout& x, const Layout& w) const {
  const auto extent = [](std::int64_t in, std::int64_t filter, int pad, int stride, int dilation) {
    return (in + 2 * pad - (dilation * (filter - 1) + 1)) / stride + 1;
  };
  return {x.size[0], w.size[0], extent(x.size[2], w.size[2], pad_h, stride_h, dilation_h),
          extent(x.size[3], w.size[3], pad_w, stride_w, dilation_w)};
}

}  // namespace reprise::test::cuda

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return api<cudnnStatus_t>("cudnnCreate", [&] {
    if (machine().status != 0) return CUDNN_STATUS_NOT_INITIALIZED;
    *handle = *live_handles().insert(new cudnnContext).first;
    (*handle)->device = current_device();
    take_overhead(current_device(), kHandleBytes);
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return dnn_api("cudnnDestroy", handle, [&] {
    give_back_overhead(handle->device, kHandleBytes);
    live_handles().erase(handle);
    delete handle;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return dnn_api("cudnnSetStream", handle, [&] {
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  return dnn_api("cudnnGetStream", handle, [&] {
    *stream = handle->stream;
    return CUDNN_STATUS_SUCCESS;
  });
}

std::size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}
std::size_t cudnnGetCudartVersion() {
  return CUDART_VERSION;
}

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  if (type == MAJOR_VERSION) *value = CUDNN_MAJOR;
  if (type == MINOR_VERSION) *value = CUDNN_MINOR;
  if (type == PATCH_LEVEL) *value = CUDNN_PATCHLEVEL;
  return CUDNN_STATUS_SUCCESS;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_STATUS of another kind";
  }
}

void cudnnGetLastErrorString(char* message, std::size_t bytes) {
  if (bytes > 0) message[0] = '\0';
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* descriptor) {
  *descriptor = new cudnnTensorStruct;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor,
                                         cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                                         int c, int h, int w) {
  if (n <= 0 || c <= 0 || h <= 0 || w <= 0) return CUDNN_STATUS_BAD_PARAM;
  if (!is_known(type)) return CUDNN_STATUS_NOT_SUPPORTED;
  descriptor->layout = layout_of(format, {n, c, h, w}, type);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                                           int n, int c, int h, int w, int n_stride, int c_stride,
                                           int h_stride, int w_stride) {
  if (n <= 0 || c <= 0 || h <= 0 || w <= 0) return CUDNN_STATUS_BAD_PARAM;
  if (!is_known(type)) return CUDNN_STATUS_NOT_SUPPORTED;
  descriptor->layout = {
      {n, c, h, w}, {n_stride, c_stride, h_stride, w_stride}, type == CUDNN_DATA_BFLOAT16};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                                         int dimensions, const int sizes[], const int strides[]) {
  if (!is_known(type) || dimensions != 4) return CUDNN_STATUS_NOT_SUPPORTED;
  descriptor->layout.bf16 = type == CUDNN_DATA_BFLOAT16;
  for (std::size_t d = 0; d < 4; ++d) {
    if (sizes[d] <= 0) return CUDNN_STATUS_BAD_PARAM;
    descriptor->layout.size[d] = sizes[d];
    descriptor->layout.stride[d] = strides[d];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* descriptor) {
  *descriptor = new cudnnFilterStruct;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  if (k <= 0 || c <= 0 || h <= 0 || w <= 0) return CUDNN_STATUS_BAD_PARAM;
  if (!is_known(type)) return CUDNN_STATUS_NOT_SUPPORTED;
  descriptor->layout = layout_of(format, {k, c, h, w}, type);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* descriptor) {
  *descriptor = new cudnnConvolutionStruct;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t descriptor, int pad_h,
                                              int pad_w, int u, int v, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type) {
  if (pad_h < 0 || pad_w < 0 || u <= 0 || v <= 0 || dilation_h <= 0 || dilation_w <= 0)
    return CUDNN_STATUS_BAD_PARAM;
  if (type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_NOT_SUPPORTED;
  descriptor->convolution = {
      pad_h, pad_w, u, v, dilation_h, dilation_w, 1, mode == CUDNN_CONVOLUTION, CUDNN_DEFAULT_MATH};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups) {
  if (groups <= 0) return CUDNN_STATUS_BAD_PARAM;
  descriptor->convolution.groups = groups;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor,
                                          cudnnMathType_t math) {
  descriptor->convolution.math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t descriptor,
                                                    const cudnnTensorDescriptor_t x,
                                                    const cudnnFilterDescriptor_t w, int* n, int* c,
                                                    int* h, int* width) {
  const Convolution& convolution = descriptor->convolution;
  if (x->layout.size[1] != w->layout.size[1] * convolution.groups) return CUDNN_STATUS_BAD_PARAM;
  const auto size = convolution.output_size(x->layout, w->layout);
  *n = static_cast<int>(size[0]);
  *c = static_cast<int>(size[1]);
  *h = static_cast<int>(size[2]);
  *width = static_cast<int>(size[3]);
  return size[2] > 0 && size[3] > 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
