#include "kernels/cuda/versions.h"

#include <nccl.h>
#include <tuple>

#include "base/error.h"
#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {
namespace {

struct Version {
  int major = 0, minor = 0, patch = 0;
  [[nodiscard]] bool before(const Version& other) const {
    return std::tie(major, minor, patch) < std::tie(other.major, other.minor, other.patch);
  }
};

std::string text(const Version& version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

void require(const char* library, const Version& built, const Version& found) {
  if (found.major == built.major && !found.before(built)) return;
  throw base::device_error(
      "{}: built with {} but {} was found at run time; install {}.x, at least {}, or put it first "
      "in LD_LIBRARY_PATH",
      library, text(built), text(found), built.major, text(built));
}

Version blas_version() {
  Version found;
  check(cublasGetProperty(MAJOR_VERSION, &found.major), "cublasGetProperty");
  check(cublasGetProperty(MINOR_VERSION, &found.minor), "cublasGetProperty");
  check(cublasGetProperty(PATCH_LEVEL, &found.patch), "cublasGetProperty");
  return found;
}

}  // namespace

std::string check_versions() {
  int runtime = 0;
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  const Version cuda{runtime / 1000, runtime % 1000 / 10, 0};
  require("CUDA runtime", {CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, 0}, cuda);

  const auto packed = static_cast<int>(cudnnGetVersion());
  const Version dnn{packed / 10000, packed % 10000 / 100, packed % 100};
  require("cuDNN", {CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL}, dnn);

  const Version blas = blas_version();
  require("cuBLAS", {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH}, blas);

  int nccl_code = 0;
  (void)ncclGetVersion(&nccl_code);
  const Version nccl{nccl_code / 10000, nccl_code % 10000 / 100, nccl_code % 100};
  require("NCCL", {NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH}, nccl);
  return fmt::format("CUDA {}.{}, cuDNN {}, cuBLAS {}, NCCL {}", cuda.major, cuda.minor, text(dnn),
                     text(blas), text(nccl));
}

}  // namespace reprise::kernels::cuda
