#include "kernels/cuda_module.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"

namespace reprise::kernels {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> candidates() {
  if (const char* named = std::getenv(kCudaModuleVariable); named != nullptr && *named != '\0')
    return {named};
  std::vector<std::string> files;
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  if (!unknown) {
    const fs::path folder = program.parent_path();
    for (const fs::path& each : {folder, folder.parent_path() / "lib"}) {
      if (fs::exists(each / kCudaModuleFile, unknown))
        files.push_back((each / kCudaModuleFile).string());
    }
  }
  files.emplace_back(kCudaModuleFile);
  return files;
}

const CudaModule* open_module() {
  std::string reasons;
  for (const std::string& file : candidates()) {
    // Local: the libraries that it brings must not answer for anybody else's symbols.
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      reasons += fmt::format("\n  {}", dlerror());
      continue;
    }
    using Entry = const CudaModule* (*)();
    const auto entry = reinterpret_cast<Entry>(dlsym(handle, kCudaModuleEntry));
    if (entry == nullptr) {
      reasons +=
          fmt::format("\n  {}: is no module of Reprise ({} is missing)", file, kCudaModuleEntry);
      continue;
    }
    const CudaModule* const module = entry();
    if (module->version != kCudaModuleVersion) {
      reasons += fmt::format("\n  {}: its version is {}, this program needs {}", file,
                             module->version, kCudaModuleVersion);
      continue;
    }
    return module;  // stays open to the end of the process
  }
  throw base::device_error(
      "the CUDA backend cannot be opened; build on a machine with the CUDA toolkit, cuDNN and "
      "NCCL, "
      "or name its file in {}:{}",
      kCudaModuleVariable, reasons);
}

std::mutex mutex;
const CudaModule* opened = nullptr;

}  // namespace

const CudaModule& cuda_module() {
  const std::lock_guard lock(mutex);
  if (opened == nullptr) opened = open_module();
  return *opened;
}

void use_cuda_module(const CudaModule& linked) {
  const std::lock_guard lock(mutex);
  opened = &linked;
}

}  // namespace reprise::kernels
