#pragma once

// Which libraries this process runs with, against those that the backend was built with.

#include <string>

namespace reprise::kernels::cuda {

// "CUDA 13.0, cuDNN 9.19.0, cuBLAS 13.1.0, NCCL 2.28.9". Throws Error(kDevice) naming library and
// both versions where one of another major version, or an older one than the headers', was found at
// run time.
[[nodiscard]] std::string check_versions();

}  // namespace reprise::kernels::cuda
