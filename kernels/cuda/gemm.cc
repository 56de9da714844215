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

#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {
namespace {

constexpr Bytes kLeastBytes = Bytes{16} << 10;
constexpr Bytes kMostBytes = Bytes{4} << 20;  // what NVIDIA recommends before Hopper
constexpr Bytes kCopies = 4;

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

void gemm(const Run& run, const GemmWorkspace& workspace, const GemmSizes& s, const float* a,
          const float* b, float* c, bool accumulate) {
  if (empty(s)) return;
  if (s.inner == 0) {
    if (accumulate) return;
    const auto floats = static_cast<std::size_t>(s.rows * s.columns * s.batch);
    check(cudaMemsetAsync(c, 0, floats * sizeof(float), run.stream()), "cudaMemsetAsync");
    return;
  }
  check(cublasSetWorkspace(run.device.blas(), workspace.piece_.in(run),
                           static_cast<std::size_t>(blas_bytes(s))),
        "cublasSetWorkspace");
  const float alpha = 1.0F;
  const float beta = accumulate ? 1.0F : 0.0F;
  const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const auto size = [](std::int64_t n) { return static_cast<int>(n); };
  if (s.batch == 1) {
    check(cublasSgemm(run.device.blas(), operation(s.transpose_b), operation(s.transpose_a),
                      size(s.columns), size(s.rows), size(s.inner), &alpha, b, size(stride_b(s)), a,
                      size(stride_a(s)), &beta, c, size(stride_c(s))),
          "cublasSgemm");
    return;
  }
  const std::int64_t step_a =
      s.step_a > 0 ? s.step_a : (s.transpose_a ? s.inner : s.rows) * stride_a(s);
  const std::int64_t step_b =
      s.step_b > 0 ? s.step_b : (s.transpose_b ? s.columns : s.inner) * stride_b(s);
  const std::int64_t step_c = s.step_c > 0 ? s.step_c : s.rows * stride_c(s);
  check(cublasSgemmStridedBatched(
            run.device.blas(), operation(s.transpose_b), operation(s.transpose_a), size(s.columns),
            size(s.rows), size(s.inner), &alpha, b, size(stride_b(s)), step_b, a, size(stride_a(s)),
            step_a, &beta, c, size(stride_c(s)), step_c, size(s.batch)),
        "cublasSgemmStridedBatched");
}

}  // namespace reprise::kernels::cuda
