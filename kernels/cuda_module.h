#pragma once

// The CUDA backend is a module of its own, opened when it is asked for: a program starts and works
// without it, without a driver and without CUDA's libraries.

#include <memory>
#include <string>

#include "kernels/backend.h"

namespace reprise::kernels {

inline constexpr const char* kCudaModuleFile = "libreprise_cuda.so";
inline constexpr const char* kCudaModuleVariable = "REPRISE_CUDA_MODULE";
inline constexpr const char* kCudaModuleEntry = "reprise_cuda_module";
// Counts changes of what this header and kernels/backend.h say between module and program.
inline constexpr int kCudaModuleVersion = 3;

struct CudaModule {
  int version = kCudaModuleVersion;
  std::unique_ptr<Backend> (*make_backend)(const BackendOptions&) = nullptr;
  // How many GPUs this process may use; Error(kDevice) saying why none can be.
  int (*count_devices)() = nullptr;
};

// Opens the module: the file named by REPRISE_CUDA_MODULE, else libreprise_cuda.so in the program's
// folder or in ../lib beside it, else where the dynamic linker looks. Opened once per process.
// Throws Error(kDevice) naming the files tried and the linker's reason.
[[nodiscard]] const CudaModule& cuda_module();

// For a program that is linked with the module: no file is opened.
void use_cuda_module(const CudaModule& linked);

}  // namespace reprise::kernels
