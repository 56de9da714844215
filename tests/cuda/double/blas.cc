// cuBLAS: products of f32 and bf16 matrices, by columns as Fortran has them.

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <set>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/faults.h"
#include "tests/cuda/double/library.h"
#include "tests/cuda/double/memory.h"

using namespace reprise::test::cuda;

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  Workspace workspace;
  int device = 0;
};

namespace {

constexpr std::size_t kHandleBytes = std::size_t{8} << 20;  // of the device's memory, made up

std::set<cublasHandle_t>& live_handles() {
  static auto* const handles = new std::set<cublasHandle_t>;
  return *handles;
}

template <class Body>
cublasStatus_t blas_api(const char* name, cublasHandle_t handle, Body body) {
  return api<cublasStatus_t>(name, [&]() -> cublasStatus_t {
    if (live_handles().count(handle) > 0) return body();
    fault(fmt::format("{} with a handle that is not there", name));
    return CUBLAS_STATUS_NOT_INITIALIZED;
  });
}

// One operand: `rows` x `columns` as stored, `batch` times.
struct Matrix {
  const void* data;
  bool bf16;
  int rows, columns;
  std::int64_t leading;
  std::int64_t stride;

  [[nodiscard]] std::size_t bytes(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * (bf16 ? 2 : sizeof(float));
  }
  [[nodiscard]] std::size_t span() const {  // bytes of one matrix
    return rows == 0 || columns == 0 ? 0 : bytes(leading * (columns - 1) + rows);
  }
  [[nodiscard]] const std::byte* of_batch(std::int64_t b) const {
    return static_cast<const std::byte*>(data) + bytes(b * stride);
  }
  void touch(std::vector<Range>& ranges, int batch, bool written) const {
    const std::int64_t used = stride == 0 ? 1 : batch;
    for (std::int64_t b = 0; b < used; ++b) {
      const std::byte* const one = of_batch(b);
      if (leading == rows || columns > 4096) {
        ranges.push_back({one, span(), written});
        continue;
      }
      for (std::int64_t c = 0; c < columns; ++c)  // the gaps between columns are someone else's
        ranges.push_back({one + bytes(c * leading), bytes(rows), written});
    }
  }
};

struct Product {
  bool transpose_a, transpose_b;
  int m, n, k;
  float alpha, beta;
  Matrix a, b, c;
  int batch;
  bool tensor_floats;
  int parts;  // sums of how many parts of k, rounded, are added up
};

// As rows of op(X), in double.
std::vector<double> packed(const Numbers& data, std::int64_t leading, int rows, int columns,
                           bool transposed, bool tensor_floats) {
  std::vector<double> result(static_cast<std::size_t>(rows) * columns);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      const float value = data.at(transposed ? j + i * leading : i + j * leading);
      result[static_cast<std::size_t>(i) * columns + j] =
          tensor_floats ? as_tensor_float(value) : value;
    }
  return result;
}

void multiply(const Product& p, const Numbers& a_data, const Numbers& b_data,
              const Numbers& c_data) {
  const auto a = packed(a_data, p.a.leading, p.m, p.k, p.transpose_a, p.tensor_floats);
  const auto b = packed(b_data, p.b.leading, p.k, p.n, p.transpose_b, p.tensor_floats);
  std::vector<double> part(p.n);
  std::vector<float> sum(p.n);
  for (int i = 0; i < p.m; ++i) {
    std::fill(sum.begin(), sum.end(), 0.0F);
    for (int s = 0; s < p.parts; ++s) {
      std::fill(part.begin(), part.end(), 0.0);
      for (int k = s; k < p.k; k += p.parts) {
        const double factor = a[static_cast<std::size_t>(i) * p.k + k];
        const double* const row = b.data() + static_cast<std::size_t>(k) * p.n;
        for (int j = 0; j < p.n; ++j) part[j] += factor * row[j];
      }
      for (int j = 0; j < p.n; ++j) sum[j] += static_cast<float>(part[j]);
    }
    for (int j = 0; j < p.n; ++j) {
      const std::int64_t at = i + j * p.c.leading;
      c_data.set(at, p.alpha * sum[j] + (p.beta == 0 ? 0 : p.beta * c_data.at(at)));
    }
  }
}

Numbers data_of(const Matrix& matrix, std::int64_t b, bool read = true) {
  return {read ? storage(matrix.of_batch(b), matrix.span()) : nullptr, matrix.bf16};
}

cublasStatus_t queue(cublasHandle_t handle, const char* name, Product p) {
  if (p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 0 || p.a.leading < std::max(1, p.a.rows) ||
      p.b.leading < std::max(1, p.b.rows) || p.c.leading < std::max(1, p.c.rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return CUBLAS_STATUS_SUCCESS;
  const cudaStream_t stream = engine().resolve(handle->stream);
  if (stream == nullptr) {
    fault(fmt::format("{} on a stream that is not there", name));
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  // A long sum is split where there is room for the parts.
  const std::size_t parts_bytes = 2 * sizeof(float) * p.m * static_cast<std::size_t>(p.n);
  p.parts = p.k >= 64 && handle->workspace.bytes >= parts_bytes ? 2 : 1;
  std::vector<Range> touched;
  if (p.k > 0) p.a.touch(touched, p.batch, false);
  if (p.k > 0) p.b.touch(touched, p.batch, false);
  p.c.touch(touched, p.batch, true);
  const auto work = [p] {
    for (std::int64_t b = 0; b < p.batch; ++b)
      multiply(p, data_of(p.a, b, p.k > 0), data_of(p.b, b, p.k > 0), data_of(p.c, b));
  };
  const cudaError_t status =
      queue_library_call(stream, name, std::move(touched), handle->workspace, work);
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

struct Types {
  cudaDataType a = CUDA_R_32F, b = CUDA_R_32F, c = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;

  // The rows of cuBLAS's table of types that are about f32 and bf16.
  [[nodiscard]] bool go_together() const {
    if (compute != CUBLAS_COMPUTE_32F || a != b) return false;
    if (a == CUDA_R_32F) return c == CUDA_R_32F;
    return a == CUDA_R_16BF && (c == CUDA_R_16BF || c == CUDA_R_32F);
  }
};

cublasStatus_t product(const char* name, cublasHandle_t handle, cublasOperation_t a_form,
                       cublasOperation_t b_form, int m, int n, int k, const float* alpha,
                       const void* a, int a_leading, long long a_stride, const void* b,
                       int b_leading, long long b_stride, const float* beta, void* c, int c_leading,
                       long long c_stride, int batch, const Types& types = {}) {
  return blas_api(name, handle, [&] {
    if (!types.go_together()) return CUBLAS_STATUS_NOT_SUPPORTED;
    const bool bf16 = types.a == CUDA_R_16BF;
    const bool ta = a_form != CUBLAS_OP_N;
    const bool tb = b_form != CUBLAS_OP_N;
    return queue(handle, name,
                 {ta,
                  tb,
                  m,
                  n,
                  k,
                  *alpha,
                  *beta,
                  {a, bf16, ta ? k : m, ta ? m : k, a_leading, a_stride},
                  {b, bf16, tb ? n : k, tb ? k : n, b_leading, b_stride},
                  {c, types.c == CUDA_R_16BF, m, n, c_leading, c_stride},
                  batch,
                  !bf16 && handle->math == CUBLAS_TF32_TENSOR_OP_MATH,
                  1});
  });
}

}  // namespace

namespace reprise::test::cuda {

void reset_blas() {
  for (const cublasHandle_t handle : live_handles()) delete handle;
  live_handles().clear();
}

}  // namespace reprise::test::cuda

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  return api<cublasStatus_t>("cublasCreate", [&] {
    if (machine().status != 0) return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = *live_handles().insert(new cublasContext).first;
    (*handle)->device = current_device();
    take_overhead(current_device(), kHandleBytes);
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return blas_api("cublasDestroy", handle, [&] {
    give_back_overhead(handle->device, kHandleBytes);
    live_handles().erase(handle);
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
  });
}

// As the real one: the workspace is the library's own again.
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return blas_api("cublasSetStream", handle, [&] {
    handle->stream = stream;
    handle->workspace = {};
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  return blas_api("cublasSetWorkspace", handle, [&] {
    if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) {
      fault("cublasSetWorkspace: not a multiple of 256: " + memory().describe(workspace, bytes));
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    handle->workspace = {workspace, workspace == nullptr ? 0 : bytes};
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return blas_api("cublasSetMathMode", handle, [&] {
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int* version) {
  return blas_api("cublasGetVersion", handle, [&] {
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  return api<cublasStatus_t>("cublasGetProperty", [&] {
    if (type == MAJOR_VERSION) *value = CUBLAS_VER_MAJOR;
    if (type == MINOR_VERSION) *value = CUBLAS_VER_MINOR;
    if (type == PATCH_LEVEL) *value = CUBLAS_VER_PATCH;
    return CUBLAS_STATUS_SUCCESS;
  });
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
      return "CUBLAS_STATUS of another kind";
  }
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return cublasGetStatusName(status);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
                              cublasOperation_t transb, int m, int n, int k, const float* alpha,
                              const float* A, int lda, const float* B, int ldb, const float* beta,
                              float* C, int ldc) {
  return product("cublasSgemm", handle, transa, transb, m, n, k, alpha, A, lda, 0, B, ldb, 0, beta,
                 C, ldc, 0, 1);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const float* alpha, const float* A, int lda,
                                         long long strideA, const float* B, int ldb,
                                         long long strideB, const float* beta, float* C, int ldc,
                                         long long strideC, int batchCount) {
  return product("cublasSgemmStridedBatched", handle, transa, transb, m, n, k, alpha, A, lda,
                 strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void* alpha,
                            const void* A, cudaDataType Atype, int lda, const void* B,
                            cudaDataType Btype, int ldb, const void* beta, void* C,
                            cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
                            cublasGemmAlgo_t) {
  return product("cublasGemmEx", handle, transa, transb, m, n, k, static_cast<const float*>(alpha),
                 A, lda, 0, B, ldb, 0, static_cast<const float*>(beta), C, ldc, 0, 1,
                 {Atype, Btype, Ctype, computeType});
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
    const void* alpha, const void* A, cudaDataType Atype, int lda, long long strideA, const void* B,
    cudaDataType Btype, int ldb, long long strideB, const void* beta, void* C, cudaDataType Ctype,
    int ldc, long long strideC, int batchCount, cublasComputeType_t computeType, cublasGemmAlgo_t) {
  return product("cublasGemmStridedBatchedEx", handle, transa, transb, m, n, k,
                 static_cast<const float*>(alpha), A, lda, strideA, B, ldb, strideB,
                 static_cast<const float*>(beta), C, ldc, strideC, batchCount,
                 {Atype, Btype, Ctype, computeType});
}
