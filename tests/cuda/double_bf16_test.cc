// The double's bf16: exact factors, sums that are rounded once, and the types that the libraries'
// documentation lets go together.

#include <cmath>
#include <cublas_v2.h>
#include <cudnn.h>
#include <gtest/gtest.h>

#include "tests/cuda/double/control.h"
#include "tests/cuda/double/device_array.h"

namespace reprise::test::cuda {
namespace {

// bf16 by their bits: 1, 2, 3, 1/256 and so on are exact.
constexpr std::uint16_t kOne = 0x3F80, kTwo = 0x4000, kThree = 0x4040, kSmall = 0x3B80;  // 1/256
using Bits = std::vector<std::uint16_t>;

class DoubleBF16 : public ::testing::Test {
 protected:
  void SetUp() override {
    reset();
    ASSERT_EQ(cublasCreate(&blas_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreate(&dnn_), CUDNN_STATUS_SUCCESS);
  }
  // c[1,1] = a[1,2] b[2,1]
  cublasStatus_t product(const void* a, cudaDataType a_type, const void* b, cudaDataType b_type,
                         void* c, cudaDataType c_type,
                         cublasComputeType_t compute = CUBLAS_COMPUTE_32F) {
    const float one = 1, zero = 0;
    return cublasGemmEx(blas_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 2, &one, a, a_type, 1, b, b_type, 2,
                        &zero, c, c_type, 1, compute, CUBLAS_GEMM_DEFAULT);
  }
  cublasHandle_t blas_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
};

TEST_F(DoubleBF16, AProductIsExactInF32AndRoundedOnceInBF16) {
  // 1 * 1 + 1/256 * 3 = 1 + 3/256: between 1 + 2/256 = 1 + 1/128 and 1 + 4/256, which is the even
  // one.
  const DeviceArray<std::uint16_t> a(Bits{kOne, kSmall}), b(Bits{kOne, kThree}), narrow(1);
  const DeviceArray<float> wide(1);
  ASSERT_EQ(product(a.get(), CUDA_R_16BF, b.get(), CUDA_R_16BF, wide.get(), CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(product(a.get(), CUDA_R_16BF, b.get(), CUDA_R_16BF, narrow.get(), CUDA_R_16BF),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(wide.values()[0], 1.0F + 3.0F / 256.0F);
  EXPECT_EQ(narrow.values()[0], 0x3F82);  // 1 + 2/128
}

TEST_F(DoubleBF16, ABatchOfProductsStepsByElementsOfTwoBytes) {
  const DeviceArray<std::uint16_t> a(Bits{kOne, kThree}), b(Bits{kTwo, kTwo});
  const DeviceArray<float> c(2);
  const float one = 1, zero = 0;
  ASSERT_EQ(
      cublasGemmStridedBatchedEx(blas_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.get(),
                                 CUDA_R_16BF, 1, 1, b.get(), CUDA_R_16BF, 1, 1, &zero, c.get(),
                                 CUDA_R_32F, 1, 1, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(c.values(), (std::vector<float>{2, 6}));
}

TEST_F(DoubleBF16, ProductsOfTypesThatDoNotGoTogetherAreRefused) {
  const DeviceArray<std::uint16_t> a(2), b(2);
  const DeviceArray<float> c(2), f(2);
  EXPECT_EQ(product(a.get(), CUDA_R_16BF, f.get(), CUDA_R_32F, c.get(), CUDA_R_32F),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(product(f.get(), CUDA_R_32F, f.get(), CUDA_R_32F, a.get(), CUDA_R_16BF),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(
      product(a.get(), CUDA_R_16BF, b.get(), CUDA_R_16BF, c.get(), CUDA_R_32F, CUBLAS_COMPUTE_16F),
      CUBLAS_STATUS_NOT_SUPPORTED);
}

// x[1,1,1,2] with a filter of one pixel, each of its own type.
struct Convolution {
  Convolution(cudnnDataType_t x_type, cudnnDataType_t w_type, cudnnDataType_t y_type) {
    cudnnCreateTensorDescriptor(&x);
    cudnnCreateTensorDescriptor(&y);
    cudnnCreateFilterDescriptor(&w);
    cudnnCreateConvolutionDescriptor(&convolution);
    cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, x_type, 1, 1, 1, 2);
    cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, y_type, 1, 1, 1, 2);
    cudnnSetFilter4dDescriptor(w, w_type, CUDNN_TENSOR_NCHW, 1, 1, 1, 1);
    cudnnSetConvolution2dDescriptor(convolution, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                    CUDNN_DATA_FLOAT);
  }
  ~Convolution() {
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroyTensorDescriptor(y);
    cudnnDestroyFilterDescriptor(w);
    cudnnDestroyConvolutionDescriptor(convolution);
  }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;
  cudnnTensorDescriptor_t x{}, y{};
  cudnnFilterDescriptor_t w{};
  cudnnConvolutionDescriptor_t convolution{};
};

TEST_F(DoubleBF16, AConvolutionRoundsItsResultOnce) {
  const Convolution z(CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16);
  // 3 * (1 + 1/128) = 3 + 3/128: bf16 numbers there are 1/64 apart, so half way; the even one is
  // 3 + 2/64.
  const DeviceArray<std::uint16_t> x(Bits{0x3F81, kTwo}), w(Bits{kThree}), y(2);
  const float one = 1, zero = 0;
  ASSERT_EQ(cudnnConvolutionForward(dnn_, &one, z.x, x.get(), z.w, w.get(), z.convolution,
                                    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &zero,
                                    z.y, y.get()),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(y.values(), (Bits{0x4042, 0x40C0}));
}

TEST_F(DoubleBF16, AFilterOfF32DoesNotGoWithImagesOfBF16) {
  const Convolution z(CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16);
  const DeviceArray<std::uint16_t> x(2), dy(2);
  const DeviceArray<float> dw(1);
  const float one = 1, zero = 0;
  EXPECT_EQ(cudnnConvolutionBackwardFilter(dnn_, &one, z.x, x.get(), z.y, dy.get(), z.convolution,
                                           CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, nullptr, 0, &zero,
                                           z.w, dw.get()),
            CUDNN_STATUS_NOT_SUPPORTED);
  int returned = 0;
  cudnnConvolutionBwdFilterAlgoPerf_t found[4];
  EXPECT_EQ(cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn_, z.x, z.y, z.convolution, z.w, 4,
                                                          &returned, found),
            CUDNN_STATUS_NOT_SUPPORTED);
}

}  // namespace
}  // namespace reprise::test::cuda
