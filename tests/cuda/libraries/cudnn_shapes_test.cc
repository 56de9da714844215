// The shapes that graph inference gives to convolutions and poolings are cuDNN's own. Asks the real
// library, whose descriptors need no GPU and no driver. Images and filters of f32 and bf16 in turn.

#include <cudnn.h>
#include <gtest/gtest.h>
#include <random>
#include <string>

#include "graph/builder.h"

namespace reprise::test {
namespace {

using graph::Shape;

constexpr unsigned kSeed = 17;
constexpr int kCases = 400;

void must(cudnnStatus_t status, const char* call) {
  ASSERT_EQ(status, CUDNN_STATUS_SUCCESS) << call << ": " << cudnnGetErrorString(status);
}

class CudnnShapesTest : public testing::Test {
 protected:
  void SetUp() override {
    must(cudnnCreateTensorDescriptor(&x_), "cudnnCreateTensorDescriptor");
    must(cudnnCreateFilterDescriptor(&w_), "cudnnCreateFilterDescriptor");
    must(cudnnCreateConvolutionDescriptor(&convolution_), "cudnnCreateConvolutionDescriptor");
    must(cudnnCreatePoolingDescriptor(&pooling_), "cudnnCreatePoolingDescriptor");
  }
  void TearDown() override {
    cudnnDestroyPoolingDescriptor(pooling_);
    cudnnDestroyConvolutionDescriptor(convolution_);
    cudnnDestroyFilterDescriptor(w_);
    cudnnDestroyTensorDescriptor(x_);
  }

  // In [least, most].
  std::int64_t draw(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  graph::Ints draw_pair(std::int64_t least, std::int64_t most) {
    const std::int64_t height = draw(least, most);
    return {height, draw(least, most)};
  }
  static cudnnDataType_t type_of(int k) {
    return k % 2 == 0 ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16;
  }
  void describe_x(const Shape& x, cudnnDataType_t type) {
    must(cudnnSetTensor4dDescriptor(x_, CUDNN_TENSOR_NCHW, type, of(x[0]), of(x[1]), of(x[2]),
                                    of(x[3])),
         "cudnnSetTensor4dDescriptor");
  }
  static int of(std::int64_t n) { return static_cast<int>(n); }

  std::mt19937 random_{kSeed};
  cudnnTensorDescriptor_t x_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  cudnnPoolingDescriptor_t pooling_ = nullptr;
};

TEST_F(CudnnShapesTest, AConvolutionHasTheOutputThatCudnnGivesIt) {
  int compared = 0;
  for (int k = 0; k < kCases; ++k) {
    const graph::Conv2dAttributes a{.stride = draw_pair(1, 3),
                                    .padding = draw_pair(0, 4),
                                    .dilation = draw_pair(1, 3),
                                    .groups = draw(1, 3)};
    const Shape x{draw(1, 4), a.groups * draw(1, 5), draw(1, 40), draw(1, 40)};
    const Shape w{a.groups * draw(1, 5), x[1] / a.groups, draw(1, 7), draw(1, 7)};
    bool fits = true;
    for (std::size_t i = 0; i < 2; ++i) {
      fits = fits && x[i + 2] + 2 * a.padding[i] >= a.dilation[i] * (w[i + 2] - 1) + 1;
    }
    if (!fits) continue;
    graph::Builder b("convolution");
    const graph::ValueId y = b.conv2d(b.input("x", x), b.parameter("w", w), a);

    describe_x(x, type_of(k));
    must(cudnnSetFilter4dDescriptor(w_, type_of(k), CUDNN_TENSOR_NCHW, of(w[0]), of(w[1]), of(w[2]),
                                    of(w[3])),
         "cudnnSetFilter4dDescriptor");
    must(cudnnSetConvolution2dDescriptor(
             convolution_, of(a.padding[0]), of(a.padding[1]), of(a.stride[0]), of(a.stride[1]),
             of(a.dilation[0]), of(a.dilation[1]), CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
         "cudnnSetConvolution2dDescriptor");
    must(cudnnSetConvolutionGroupCount(convolution_, of(a.groups)),
         "cudnnSetConvolutionGroupCount");
    int n = 0, c = 0, height = 0, width = 0;
    must(cudnnGetConvolution2dForwardOutputDim(convolution_, x_, w_, &n, &c, &height, &width),
         "cudnnGetConvolution2dForwardOutputDim");
    EXPECT_EQ(b.graph().values[y].shape, (Shape{n, c, height, width}))
        << "x " << graph::shape_text(x) << ", w " << graph::shape_text(w) << ", case " << k
        << " of seed " << kSeed;
    ++compared;
  }
  EXPECT_GT(compared, kCases / 2);
}

TEST_F(CudnnShapesTest, APoolingHasTheOutputThatCudnnGivesIt) {
  for (int k = 0; k < kCases; ++k) {
    graph::Pool2dAttributes a{.kernel = draw_pair(1, 6), .stride = draw_pair(1, 4)};
    for (std::size_t i = 0; i < 2; ++i) a.padding[i] = draw(0, a.kernel[i] / 2);
    const Shape x{draw(1, 4), draw(1, 5), draw(6, 40), draw(6, 40)};
    graph::Builder b("pooling");
    const graph::ValueId y = b.max_pool(b.input("x", x), a);

    describe_x(x, type_of(k));
    must(cudnnSetPooling2dDescriptor(pooling_, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN,
                                     of(a.kernel[0]), of(a.kernel[1]), of(a.padding[0]),
                                     of(a.padding[1]), of(a.stride[0]), of(a.stride[1])),
         "cudnnSetPooling2dDescriptor");
    int n = 0, c = 0, height = 0, width = 0;
    must(cudnnGetPooling2dForwardOutputDim(pooling_, x_, &n, &c, &height, &width),
         "cudnnGetPooling2dForwardOutputDim");
    EXPECT_EQ(b.graph().values[y].shape, (Shape{n, c, height, width}))
        << "x " << graph::shape_text(x) << ", case " << k << " of seed " << kSeed;
  }
}

}  // namespace
}  // namespace reprise::test
