// cudart: devices, versions, errors.

#include <cstring>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/capture.h"
#include "tests/cuda/double/memory.h"

using namespace reprise::test::cuda;

namespace {

bool is_device(int device) {
  return device >= 0 && device < machine().devices;
}

struct ErrorText {
  cudaError_t status;
  const char* name;
  const char* text;
};
#define TEXT(status, text) \
  { status, #status, text }
constexpr ErrorText kErrors[] = {
    TEXT(cudaSuccess, "no error"),
    TEXT(cudaErrorInvalidValue, "invalid argument"),
    TEXT(cudaErrorMemoryAllocation, "out of memory"),
    TEXT(cudaErrorInsufficientDriver,
         "CUDA driver version is insufficient for CUDA runtime version"),
    TEXT(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    TEXT(cudaErrorInvalidDevice, "invalid device ordinal"),
    TEXT(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    TEXT(cudaErrorNotReady, "device not ready"),
    TEXT(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    TEXT(cudaErrorLaunchFailure, "unspecified launch failure"),
    TEXT(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    TEXT(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    TEXT(cudaErrorStreamCaptureInvalidated,
         "operation failed due to a previous error during capture"),
    TEXT(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    TEXT(cudaErrorStreamCaptureIsolation,
         "dependency created on uncaptured work in another stream"),
    TEXT(cudaErrorStreamCaptureImplicit,
         "operation would make the legacy stream depend on a capturing blocking stream"),
    TEXT(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capture"),
};
#undef TEXT

const ErrorText* find_error(cudaError_t status) {
  for (const ErrorText& error : kErrors)
    if (error.status == status) return &error;
  return nullptr;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  return api<cudaError_t>("cudaGetDeviceCount", [&]() -> cudaError_t {
    if (machine().status != 0) return static_cast<cudaError_t>(machine().status);
    if (machine().devices == 0) return cudaErrorNoDevice;
    *count = machine().devices;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return device_api("cudaSetDevice", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    set_current_device(device);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return device_api("cudaGetDevice", [&] {
    *device = current_device();
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return device_api("cudaGetDeviceProperties", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    std::memset(properties, 0, sizeof *properties);
    std::strcpy(properties->name, "Double of a GPU");
    properties->totalGlobalMem = machine().memory_bytes;
    properties->sharedMemPerBlock = 48 << 10;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->multiProcessorCount = 4;
    properties->major = machine().generation;
    properties->minor = 0;
    properties->pciBusID = device + 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return device_api("cudaDeviceGetAttribute", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrMultiProcessorCount:
        *value = 4;
        return cudaSuccess;
      case cudaDevAttrMaxThreadsPerBlock:
        *value = 1024;
        return cudaSuccess;
      case cudaDevAttrWarpSize:
        *value = 32;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMajor:
        *value = machine().generation;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMinor:
        *value = 0;
        return cudaSuccess;
      default:
        return cudaErrorInvalidValue;
    }
  });
}

cudaError_t cudaDeviceSynchronize() {
  return device_api("cudaDeviceSynchronize", [&] {
    const cudaError_t unsafe = unsafe_now();
    if (unsafe != cudaSuccess) return unsafe;
    return engine().wait_for_device(current_device()) ? cudaSuccess : cudaErrorLaunchTimeout;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return api<cudaError_t>("cudaRuntimeGetVersion", [&] {
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return api<cudaError_t>("cudaDriverGetVersion", [&] {
    *version = machine().status == cudaErrorInsufficientDriver ? 0 : CUDART_VERSION;
    return cudaSuccess;
  });
}

// Neither counts nor fails: they answer even where nothing else does.
cudaError_t cudaGetLastError() {
  return take_error(true);
}
cudaError_t cudaPeekAtLastError() {
  return take_error(false);
}

const char* cudaGetErrorName(cudaError_t status) {
  const ErrorText* const error = find_error(status);
  return error != nullptr ? error->name : "cudaErrorOfAnotherKind";
}

const char* cudaGetErrorString(cudaError_t status) {
  const ErrorText* const error = find_error(status);
  return error != nullptr ? error->text : "an error that the double has no words for";
}
