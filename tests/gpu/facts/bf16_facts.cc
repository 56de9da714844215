// Products and convolutions of bf16.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/gpu/facts/facts.h"

namespace reprise::test::facts {
namespace {

constexpr int kSide = 16, kInner = 64;

// Of f32, those of the upper 16 bits, which is what bf16 has room for; two in the place of a float.
std::vector<float> in_bf16(const std::vector<float>& values) {
  std::vector<float> packed((values.size() + 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto upper = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]) >> 16);
    std::memcpy(reinterpret_cast<char*>(packed.data()) + 2 * i, &upper, sizeof(upper));
  }
  return packed;
}

// 1 + k / 128 with its sign: all 8 bits of bf16 are in use.
std::vector<float> full_width(int count, int step) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) {
    const float value = 1.0F + static_cast<float>(i * step % 128) / 128.0F;
    values.push_back(i * step / 7 % 2 == 0 ? value : -value);
  }
  return values;
}

// C[kSide, kSide] = A^T B over kInner, of bf16.
class Product {
 public:
  Product()
      : a_values_(full_width(kSide * kInner, 37)),
        b_values_(full_width(kSide * kInner, 11)),
        a_(in_bf16(a_values_)),
        b_(in_bf16(b_values_)),
        c_(kSide * kSide) {
    REPRISE_MUST(cublasCreate(&blas_));
    REPRISE_MUST(cublasSetStream(blas_, stream.get()));
    REPRISE_MUST(cublasSetMathMode(
        blas_, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                         CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
  }
  ~Product() { (void)cublasDestroy(blas_); }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  cublasStatus_t queue(cudaDataType a, cudaDataType b, cudaDataType c) const {
    const float one = 1, zero = 0;
    return cublasGemmEx(blas_, CUBLAS_OP_T, CUBLAS_OP_N, kSide, kSide, kInner, &one, a_.get(), a,
                        kInner, b_.get(), b, kInner, &zero, c_.get(), c, kSide, CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT);
  }
  void spoil() const {
    c_.set(std::vector<float>(kSide * kSide, std::numeric_limits<float>::quiet_NaN()));
  }
  [[nodiscard]] std::vector<float> values() const { return c_.values(); }
  [[nodiscard]] double truth(int i, int j) const {
    double sum = 0;
    for (int k = 0; k < kInner; ++k)
      sum += static_cast<double>(a_values_[static_cast<std::size_t>(i * kInner + k)]) *
             static_cast<double>(b_values_[static_cast<std::size_t>(j * kInner + k)]);
    return sum;
  }

  Stream stream;

 private:
  cublasHandle_t blas_ = nullptr;
  std::vector<float> a_values_, b_values_;
  Floats a_, b_, c_;
};

void exact_factors(Notes& notes) {
  const Product product;
  product.spoil();
  REPRISE_MUST(product.queue(CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F));
  const std::vector<float> got = product.values();
  double off = 0;
  for (int i = 0; i < kSide; ++i)
    for (int j = 0; j < kSide; ++j)
      off = std::max(off,
                     std::abs(got[static_cast<std::size_t>(j * kSide + i)] - product.truth(i, j)));
  notes.push_back(fmt::format("off by {:.1e}", off));
  // 64 products of up to 4, multiples of 2^-14: no sum needs more than 14 + 8 bits, so in f32 none
  // is rounded. (Tensor cores drop what lies below the last bit of the largest term: none does.)
  expect(off == 0, fmt::format("off by {:.1e}", off));
}

void mixed_types(Notes& /*notes*/) {
  const Product product;
  expect(product.queue(CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS,
         "bf16 times f32 is not refused");
  expect(product.queue(CUDA_R_32F, CUDA_R_32F, CUDA_R_16BF) != CUBLAS_STATUS_SUCCESS,
         "f32 rounded to bf16 is not refused");
}

// dw[8,8,1,1] of x[2,8,6,6] and dy[2,8,6,6].
struct WeightGradient {
  static constexpr int kBatch = 2, kChannels = 8, kPixels = 36;
  WeightGradient(cudnnDataType_t images, cudnnDataType_t filter, cudnnMathType_t math) {
    REPRISE_MUST(cudnnCreate(&dnn));
    REPRISE_MUST(cudnnCreateTensorDescriptor(&x));
    REPRISE_MUST(cudnnCreateFilterDescriptor(&w));
    REPRISE_MUST(cudnnCreateConvolutionDescriptor(&conv));
    REPRISE_MUST(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, images, kBatch, kChannels, 6, 6));
    REPRISE_MUST(
        cudnnSetFilter4dDescriptor(w, filter, CUDNN_TENSOR_NCHW, kChannels, kChannels, 1, 1));
    REPRISE_MUST(cudnnSetConvolution2dDescriptor(conv, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                                 CUDNN_DATA_FLOAT));
    REPRISE_MUST(cudnnSetConvolutionMathType(conv, math));
  }
  ~WeightGradient() {
    (void)cudnnDestroyConvolutionDescriptor(conv);
    (void)cudnnDestroyFilterDescriptor(w);
    (void)cudnnDestroyTensorDescriptor(x);
    (void)cudnnDestroy(dnn);
  }
  WeightGradient(const WeightGradient&) = delete;
  WeightGradient& operator=(const WeightGradient&) = delete;
  cudnnStatus_t workspace(cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) const {
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn, x, x, conv, w, algorithm, bytes);
  }
  cudnnHandle_t dnn{};
  cudnnTensorDescriptor_t x{};
  cudnnFilterDescriptor_t w{};
  cudnnConvolutionDescriptor_t conv{};
};

void wide_filter(Notes& /*notes*/) {
  const WeightGradient mixed(CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH);
  std::size_t bytes = 0;
  expect(mixed.workspace(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, &bytes) != CUDNN_STATUS_SUCCESS,
         "cuDNN would sum bf16 images into a filter of f32: the copies to f32 are not needed");
}

void tensor_cores_keep_bf16(Notes& notes) {
  const WeightGradient g(CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH);
  constexpr int kCount = WeightGradient::kBatch * WeightGradient::kChannels * 36;
  const std::vector<float> x = full_width(kCount, 37), dy = full_width(kCount, 11);
  const Floats of_x(x), of_dy(dy), dw(std::size_t{64});
  const auto algorithm = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
  std::size_t bytes = 0;
  REPRISE_MUST(g.workspace(algorithm, &bytes));
  const Floats workspace(bytes / sizeof(float) + 64);
  const float one = 1, zero = 0;
  REPRISE_MUST(cudnnConvolutionBackwardFilter(g.dnn, &one, g.x, of_x.get(), g.x, of_dy.get(),
                                              g.conv, algorithm, workspace.get(), bytes, &zero, g.w,
                                              dw.get()));
  const std::vector<float> got = dw.values();
  double off = 0;
  for (std::size_t o = 0; o < 8; ++o)
    for (std::size_t c = 0; c < 8; ++c) {
      double sum = 0;
      for (std::size_t n = 0; n < 2; ++n)
        for (std::size_t i = 0; i < 36; ++i)
          sum += static_cast<double>(x[(n * 8 + c) * 36 + i]) *
                 static_cast<double>(dy[(n * 8 + o) * 36 + i]);
      off = std::max(off, std::abs(static_cast<double>(got[o * 8 + c]) - sum));
    }
  notes.push_back(fmt::format("off by {:.1e}", off));
  // 72 products of up to 4, multiples of 2^-14, as above.
  expect(off == 0, fmt::format("off by {:.1e}", off));
}

}  // namespace

void add_bf16_facts(std::vector<Fact>& facts) {
  facts.push_back({"a product of bf16 loses nothing in f32", exact_factors});
  facts.push_back({"a product of bf16 and f32 is refused", mixed_types});
  facts.push_back({"a filter of f32 does not go with images of bf16", wide_filter});
  facts.push_back(
      {"convolutions of f32 on tensor cores lose nothing of bf16 numbers", tensor_cores_keep_bf16});
}

}  // namespace reprise::test::facts
