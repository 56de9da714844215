// cuBLAS wants columns side by side. A row-major C[M,P] is the column-major C'[P,M], and C' = B'
// A', so the operands change places and nothing else does.
//
// Workspace. Without one of the caller's, cuBLAS takes what it needs from a pool of its own, and
// from memory it allocates anew in each captured graph: bytes outside of the budget. So a node
// books the workspace of its products and hands it to cuBLAS before each. Its size depends on the
// product alone, since cuBLAS chooses its algorithm by the size among other things: the same
// product gives the same bits in every plan. (cuBLAS promises equal bits for equal calls on one
// stream, or with a workspace of the caller's; here both hold.) 16 KiB is what it needs never to
// fail; a product that is split along its inner axis keeps several copies of C, which is what the
// rest is for.

#include "kernels/cuda/gemm.h"

#include <algorithm>
#include <limits>

#include "kernels/cuda/element.h"
#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {
namespace {

constexpr Bytes kLeastBytes = Bytes{16} << 10;
constexpr Bytes kMostBytes = Bytes{4} << 20;  // what NVIDIA recommends before Hopper
constexpr Bytes kCopies = 4;

// Sums are f32 whatever C is.
Bytes blas_bytes(const GemmSizes& s) {
  const Bytes c = s.rows * s.columns * s.batch * static_cast<Bytes>(sizeof(float));
  return std::clamp(kCopies * std::min(c, kMostBytes), kLeastBytes, kMostBytes);
}

bool empty(const GemmSizes& s) {
  return s.rows == 0 || s.columns == 0 || s.batch == 0;
}

std::int64_t stride_a(const GemmSizes& s) {
  return s.stride_a > 0 ? s.stride_a : s.transpose_a ? s.rows : s.inner;
}
std::int64_t stride_b(const GemmSizes& s) {
  return s.stride_b > 0 ? s.stride_b : s.transpose_b ? s.inner : s.columns;
}
std::int64_t stride_c(const GemmSizes& s) {
  return s.stride_c > 0 ? s.stride_c : s.columns;
}

bool dense_c(const GemmSizes& s) {
  return stride_c(s) == s.columns && (s.step_c == 0 || s.step_c == s.rows * s.columns);
}

// Between the matrices of a batch.
std::int64_t step_a(const GemmSizes& s) {
  return s.step_a > 0 ? s.step_a : (s.transpose_a ? s.inner : s.rows) * stride_a(s);
}
std::int64_t step_b(const GemmSizes& s) {
  return s.step_b > 0 ? s.step_b : (s.transpose_b ? s.columns : s.inner) * stride_b(s);
}
std::int64_t step_c(const GemmSizes& s) {
  return s.step_c > 0 ? s.step_c : s.rows * stride_c(s);
}

cublasOperation_t operation(bool transpose) {
  return transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
}

int size(std::int64_t n) {
  return static_cast<int>(n);
}

void multiply_f32(cublasHandle_t blas, const GemmSizes& s, const float* a, const float* b, float* c,
                  bool accumulate) {
  const float alpha = 1.0F;
  const float beta = accumulate ? 1.0F : 0.0F;
  if (s.batch == 1) {
    check(cublasSgemm(blas, operation(s.transpose_b), operation(s.transpose_a), size(s.columns),
                      size(s.rows), size(s.inner), &alpha, b, size(stride_b(s)), a,
                      size(stride_a(s)), &beta, c, size(stride_c(s))),
          "cublasSgemm");
    return;
  }
  check(cublasSgemmStridedBatched(blas, operation(s.transpose_b), operation(s.transpose_a),
                                  size(s.columns), size(s.rows), size(s.inner), &alpha, b,
                                  size(stride_b(s)), step_b(s), a, size(stride_a(s)), step_a(s),
                                  &beta, c, size(stride_c(s)), step_c(s), size(s.batch)),
        "cublasSgemmStridedBatched");
}

void multiply_bf16(cublasHandle_t blas, const GemmSizes& s, const void* a, const void* b, void* c,
                   bool accumulate) {
  const float alpha = 1.0F;
  const float beta = accumulate ? 1.0F : 0.0F;
  const cudaDataType_t result = s.bf16_result ? CUDA_R_16BF : CUDA_R_32F;
  if (s.batch == 1) {
    check(cublasGemmEx(blas, operation(s.transpose_b), operation(s.transpose_a), size(s.columns),
                       size(s.rows), size(s.inner), &alpha, b, CUDA_R_16BF, size(stride_b(s)), a,
                       CUDA_R_16BF, size(stride_a(s)), &beta, c, result, size(stride_c(s)),
                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
    return;
  }
  check(cublasGemmStridedBatchedEx(
            blas, operation(s.transpose_b), operation(s.transpose_a), size(s.columns), size(s.rows),
            size(s.inner), &alpha, b, CUDA_R_16BF, size(stride_b(s)), step_b(s), a, CUDA_R_16BF,
            size(stride_a(s)), step_a(s), &beta, c, result, size(stride_c(s)), step_c(s),
            size(s.batch), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
}

}  // namespace

GemmWorkspace::GemmWorkspace(Booking& booking, std::initializer_list<GemmSizes> products) {
  Bytes bytes = 0;
  for (const GemmSizes& s : products) {
    const std::int64_t largest =
        std::max({s.rows, s.columns, s.inner, s.batch, stride_a(s), stride_b(s), stride_c(s)});
    if (largest > std::numeric_limits<int>::max()) {
      throw booking.unsupported("an axis of the product is longer than 2147483647");
    }
    REPRISE_CHECK(s.inner > 0 || dense_c(s), "node '{}': a product to be cleared has gaps",
                  booking.node().name);
    if (!empty(s) && s.inner > 0) bytes = std::max(bytes, blas_bytes(s));
  }
  piece_ = LibraryWorkspace(booking, bytes);
}

void gemm(const Run& run, const GemmWorkspace& workspace, const GemmSizes& s, const void* a,
          const void* b, void* c, bool accumulate) {
  REPRISE_CHECK(s.bf16_factors || !s.bf16_result, "node '{}': a product of f32 is f32", run.node);
  if (empty(s)) return;
  if (s.inner == 0) {
    if (accumulate) return;
    const auto count = static_cast<std::size_t>(s.rows * s.columns * s.batch);
    const std::size_t bytes = count * (s.bf16_result ? sizeof(BFloat16) : sizeof(float));
    check(cudaMemsetAsync(c, 0, bytes, run.stream()), "cudaMemsetAsync");
    return;
  }
  const cublasHandle_t blas = s.bf16_factors ? run.device.blas_of_bf16() : run.device.blas();
  check(cublasSetWorkspace(blas, workspace.piece_.in(run), static_cast<std::size_t>(blas_bytes(s))),
        "cublasSetWorkspace");
  if (s.bf16_factors) {
    multiply_bf16(blas, s, a, b, c, accumulate);
  } else {
    multiply_f32(blas, s, static_cast<const float*>(a), static_cast<const float*>(b),
                 static_cast<float*>(c), accumulate);
  }
}

}  // namespace reprise::kernels::cuda
