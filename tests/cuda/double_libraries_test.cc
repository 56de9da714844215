// The double's products and convolutions are right, and as particular about workspaces as they can
// be.

#include <cmath>
#include <cublas_v2.h>
#include <cudnn.h>
#include <gtest/gtest.h>
#include <random>

#include "tests/cuda/double/control.h"
#include "tests/cuda/double/device_array.h"

namespace reprise::test::cuda {
namespace {

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

class DoubleLibraries : public ::testing::Test {
 protected:
  void SetUp() override {
    reset();
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_EQ(cublasCreate(&blas_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasSetStream(blas_, stream_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreate(&dnn_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetStream(dnn_, stream_), CUDNN_STATUS_SUCCESS);
  }
  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
};

TEST_F(DoubleLibraries, ProductsAreByColumns) {
  // [1 3; 2 4] [5; 6] = [23; 34], by columns.
  const DeviceArray<float> a({1, 2, 3, 4}), b({5, 6}), c({100, 200});
  const float alpha = 2, beta = 1;
  ASSERT_EQ(cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 2, &alpha, a.get(), 2, b.get(), 2,
                        &beta, c.get(), 2),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(c.values(), (std::vector<float>{146, 268}));
  // [1 2; 3 4] [5; 6] = [17; 39]; what C held, NaN too, does not count with beta 0.
  const DeviceArray<float> d({NAN, NAN});
  const float zero = 0;
  ASSERT_EQ(cublasSgemm(blas_, CUBLAS_OP_T, CUBLAS_OP_N, 2, 1, 2, &alpha, a.get(), 2, b.get(), 2,
                        &zero, d.get(), 2),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(d.values(), (std::vector<float>{34, 78}));
}

TEST_F(DoubleLibraries, BatchesStepByTheirStrides) {
  const DeviceArray<float> a({2, 3}), b({10, 20}), c(2);
  const float one = 1, zero = 0;
  ASSERT_EQ(cublasSgemmStridedBatched(blas_, CUBLAS_OP_N, CUBLAS_OP_T, 1, 1, 1, &one, a.get(), 1, 1,
                                      b.get(), 1, 1, &zero, c.get(), 1, 1, 2),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(c.values(), (std::vector<float>{20, 60}));
}

TEST_F(DoubleLibraries, TheWorkspaceOfAProductIsOverwrittenAndShowsInItsBits) {
  const DeviceArray<float> a(random_values(8000, 1)), b(random_values(1000, 2)), c(8);
  const DeviceArray<unsigned char> workspace(256);
  const float one = 1, zero = 0;
  const auto product = [&](std::size_t bytes) {
    EXPECT_EQ(cublasSetWorkspace(blas_, workspace.get(), bytes), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_N, 8, 1, 1000, &one, a.get(), 8, b.get(),
                          1000, &zero, c.get(), 8),
              CUBLAS_STATUS_SUCCESS);
    return c.values();
  };
  const std::vector<float> whole = product(0);
  for (const unsigned char byte : workspace.values()) EXPECT_EQ(byte, 0xA5);
  const std::vector<float> in_parts = product(256);
  for (const unsigned char byte : workspace.values()) EXPECT_NE(byte, 0xA5);
  EXPECT_NE(whole, in_parts);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(whole[i], in_parts[i], 1e-5);
  EXPECT_EQ(in_parts, product(256));
}

TEST_F(DoubleLibraries, AnUnalignedWorkspaceOfAProductIsRefused) {
  const DeviceArray<char> workspace(512);
  CollectedFaults faults;
  EXPECT_EQ(cublasSetWorkspace(blas_, workspace.get() + 64, 256), CUBLAS_STATUS_INVALID_VALUE);
  ASSERT_EQ(faults.all().size(), 1U);
  EXPECT_NE(faults.all()[0].find("bytes [64, 320) of allocation 1"), std::string::npos);
}

TEST_F(DoubleLibraries, AProductMustNotWriteWhatItReads) {
  const DeviceArray<float> a({1, 2, 3, 4});
  const float one = 1, zero = 0;
  CollectedFaults faults;
  cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 2, &one, a.get(), 1, a.get() + 2, 2, &zero,
              a.get() + 1, 1);
  ASSERT_EQ(faults.all().size(), 1U);
  EXPECT_NE(faults.all()[0].find("bytes [4, 8) of allocation 1"), std::string::npos);
}

// A convolution in the letters of cuDNN, with its descriptors.
struct Case {
  int n, c, h, w, k, r, s, pad, stride, dilation, groups;
  int p = 0, q = 0;
  cudnnTensorDescriptor_t x{}, y{};
  cudnnFilterDescriptor_t filter{};
  cudnnConvolutionDescriptor_t convolution{};

  void describe(cudnnMathType_t math = CUDNN_FMA_MATH) {
    cudnnCreateTensorDescriptor(&x);
    cudnnCreateTensorDescriptor(&y);
    cudnnCreateFilterDescriptor(&filter);
    cudnnCreateConvolutionDescriptor(&convolution);
    cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w);
    cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, k, c / groups, r, s);
    cudnnSetConvolution2dDescriptor(convolution, pad, pad, stride, stride, dilation, dilation,
                                    CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    cudnnSetConvolutionGroupCount(convolution, groups);
    cudnnSetConvolutionMathType(convolution, math);
    int yn = 0, yk = 0;
    ASSERT_EQ(cudnnGetConvolution2dForwardOutputDim(convolution, x, filter, &yn, &yk, &p, &q),
              CUDNN_STATUS_SUCCESS);
    cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, yn, yk, p, q);
  }
  ~Case() {
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroyTensorDescriptor(y);
    cudnnDestroyFilterDescriptor(filter);
    cudnnDestroyConvolutionDescriptor(convolution);
  }
};

// sum over everything of x * w * dy, from the definition: x at (p*stride - pad + r*dilation, ...).
// y, dx and dw are its derivatives by dy, x and w.
double trilinear(const Case& z, const std::vector<float>& x, const std::vector<float>& w,
                 const std::vector<float>& dy) {
  double sum = 0;
  const int cg = z.c / z.groups, kg = z.k / z.groups;
  for (int n = 0; n < z.n; ++n)
    for (int k = 0; k < z.k; ++k)
      for (int p = 0; p < z.p; ++p)
        for (int q = 0; q < z.q; ++q)
          for (int c = 0; c < cg; ++c)
            for (int r = 0; r < z.r; ++r)
              for (int s = 0; s < z.s; ++s) {
                const int i = p * z.stride - z.pad + r * z.dilation;
                const int j = q * z.stride - z.pad + s * z.dilation;
                if (i < 0 || i >= z.h || j < 0 || j >= z.w) continue;
                sum += double{x[((n * z.c + k / kg * cg + c) * z.h + i) * z.w + j]} *
                       w[((k * cg + c) * z.r + r) * z.s + s] *
                       dy[((n * z.k + k) * z.p + p) * z.q + q];
              }
  return sum;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

TEST_F(DoubleLibraries, ConvolutionsAreTheDerivativesOfOneSumWhateverTheAlgorithm) {
  Case cases[] = {{2, 4, 5, 6, 6, 3, 3, 1, 1, 1, 1},
                  {2, 4, 7, 5, 6, 3, 2, 1, 2, 1, 2},
                  {1, 3, 8, 8, 3, 3, 3, 2, 1, 2, 3},
                  {3, 2, 4, 4, 5, 1, 1, 0, 2, 1, 1}};
  const float one = 1, zero = 0;
  for (Case& z : cases) {
    z.describe();
    const auto x = random_values(static_cast<std::size_t>(z.n * z.c * z.h * z.w), 1);
    const auto w = random_values(static_cast<std::size_t>(z.k * z.c / z.groups * z.r * z.s), 2);
    const auto dy = random_values(static_cast<std::size_t>(z.n * z.k * z.p * z.q), 3);
    const DeviceArray<float> dev_x(x), dev_w(w), dev_dy(dy), y(dy.size()), dx(x.size()),
        dw(w.size());
    const DeviceArray<char> workspace(1 << 20);
    const double expected = trilinear(z, x, w, dy);
    int done = 0;
    for (int algo = 0; algo < 8; ++algo) {
      if (cudnnConvolutionForward(dnn_, &one, z.x, dev_x.get(), z.filter, dev_w.get(),
                                  z.convolution, static_cast<cudnnConvolutionFwdAlgo_t>(algo),
                                  workspace.get(), workspace.bytes(), &zero, z.y,
                                  y.get()) == CUDNN_STATUS_SUCCESS) {
        EXPECT_NEAR(dot(y.values(), dy), expected, 1e-4) << "forward " << algo;
        ++done;
      }
      if (cudnnConvolutionBackwardData(
              dnn_, &one, z.filter, dev_w.get(), z.y, dev_dy.get(), z.convolution,
              static_cast<cudnnConvolutionBwdDataAlgo_t>(algo), workspace.get(), workspace.bytes(),
              &zero, z.x, dx.get()) == CUDNN_STATUS_SUCCESS) {
        EXPECT_NEAR(dot(dx.values(), x), expected, 1e-4) << "data " << algo;
        ++done;
      }
      if (cudnnConvolutionBackwardFilter(
              dnn_, &one, z.x, dev_x.get(), z.y, dev_dy.get(), z.convolution,
              static_cast<cudnnConvolutionBwdFilterAlgo_t>(algo), workspace.get(),
              workspace.bytes(), &zero, z.filter, dw.get()) == CUDNN_STATUS_SUCCESS) {
        EXPECT_NEAR(dot(dw.values(), w), expected, 1e-4) << "filter " << algo;
        ++done;
      }
    }
    EXPECT_GE(done, 7);
  }
}

TEST_F(DoubleLibraries, AConvolutionNeedsAllOfItsWorkspace) {
  Case z{1, 2, 4, 4, 2, 3, 3, 1, 1, 1, 1};
  z.describe();
  std::size_t bytes = 0;
  ASSERT_EQ(cudnnGetConvolutionForwardWorkspaceSize(dnn_, z.x, z.filter, z.convolution, z.y,
                                                    CUDNN_CONVOLUTION_FWD_ALGO_GEMM, &bytes),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(bytes, 2U * 9 * 16 * 4);  // channels, window, places, floats
  const DeviceArray<float> x(32), w(36), y(32);
  const DeviceArray<char> workspace(bytes);
  const float one = 1, zero = 0;
  const auto run = [&](std::size_t given) {
    return cudnnConvolutionForward(dnn_, &one, z.x, x.get(), z.filter, w.get(), z.convolution,
                                   CUDNN_CONVOLUTION_FWD_ALGO_GEMM, workspace.get(), given, &zero,
                                   z.y, y.get());
  };
  EXPECT_EQ(run(bytes), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(run(bytes - 1), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(DoubleLibraries, OnlyFmaMathKeepsAllBits) {
  const float value = 1 + 1.0F / 4096;  // needs 12 bits behind the point; tensor cores have 10
  const DeviceArray<float> x(std::vector<float>{value}), w(std::vector<float>{1}), y(1);
  const float one = 1, zero = 0;
  for (const cudnnMathType_t math : {CUDNN_FMA_MATH, CUDNN_DEFAULT_MATH}) {
    Case z{1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1};
    z.describe(math);
    ASSERT_EQ(cudnnConvolutionForward(dnn_, &one, z.x, x.get(), z.filter, w.get(), z.convolution,
                                      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &zero,
                                      z.y, y.get()),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(y.values()[0], math == CUDNN_FMA_MATH ? value : 1.0F);
  }
}

TEST_F(DoubleLibraries, AlgorithmsThatAreNotDeterministicAreNot) {
  Case z{8, 3, 6, 6, 4, 3, 3, 1, 1, 1, 1};
  z.describe();
  const DeviceArray<float> x(random_values(8 * 3 * 36, 1)), dy(random_values(8 * 4 * 36, 2)),
      dw(4 * 3 * 9);
  const DeviceArray<char> workspace(1 << 20);
  const float one = 1, zero = 0;
  const auto run = [&](cudnnConvolutionBwdFilterAlgo_t algo) {
    EXPECT_EQ(cudnnConvolutionBackwardFilter(dnn_, &one, z.x, x.get(), z.y, dy.get(), z.convolution,
                                             algo, workspace.get(), workspace.bytes(), &zero,
                                             z.filter, dw.get()),
              CUDNN_STATUS_SUCCESS);
    return dw.values();
  };
  EXPECT_EQ(run(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1), run(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1));
  EXPECT_NE(run(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0), run(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0));
}

TEST_F(DoubleLibraries, AlgorithmsAreListedFastestFirstWithTheirWorkspace) {
  Case z{1, 2, 4, 4, 2, 3, 3, 1, 1, 1, 1};
  z.describe();
  cudnnConvolutionFwdAlgoPerf_t found[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
  int count = 0;
  ASSERT_EQ(cudnnGetConvolutionForwardAlgorithm_v7(dnn_, z.x, z.filter, z.convolution, z.y,
                                                   CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &count, found),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(count, 4);
  for (int i = 0; i < count; ++i) {
    std::size_t bytes = 0;
    ASSERT_EQ(cudnnGetConvolutionForwardWorkspaceSize(dnn_, z.x, z.filter, z.convolution, z.y,
                                                      found[i].algo, &bytes),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(found[i].memory, bytes);
    if (i > 0) {
      EXPECT_LT(found[i - 1].time, found[i].time);
    }
  }
}

}  // namespace
}  // namespace reprise::test::cuda
