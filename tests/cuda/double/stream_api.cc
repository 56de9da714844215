// cudart: streams, kernels and host functions on them.

#include <utility>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/capture.h"
#include "tests/cuda/double/faults.h"

using namespace reprise::test::cuda;

namespace reprise::test::cuda {

cudaError_t enqueue(cudaStream_t stream, std::string name, std::vector<Range> touched,
                    std::function<void()> work) {
  return device_api("cudaLaunchKernel", [&] {
    const cudaStream_t on = engine().resolve(stream);
    if (on == nullptr) {
      fault("kernel '" + name + "' on a stream that is not there");
      return cudaErrorInvalidResourceHandle;
    }
    return engine().submit(
        on, {std::move(name), Kind::kKernel, std::move(touched), std::move(work), nullptr});
  });
}

}  // namespace reprise::test::cuda

namespace {

// A call about one stream: body(stream) for one that is there.
template <class Body>
cudaError_t stream_api(const char* name, cudaStream_t stream, Body body) {
  return device_api(name, [&]() -> cudaError_t {
    const cudaStream_t on = engine().resolve(stream);
    if (on == nullptr) {
      fault(std::string(name) + " with a stream that is not there");
      return cudaErrorInvalidResourceHandle;
    }
    return body(on);
  });
}

cudaError_t create(const char* name, cudaStream_t* stream, unsigned flags) {
  return device_api(name, [&] {
    if (flags != cudaStreamDefault && flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *stream = engine().new_stream(current_device(), flags == cudaStreamDefault);
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return create("cudaStreamCreate", stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return create("cudaStreamCreateWithFlags", stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return create("cudaStreamCreateWithPriority", stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return device_api("cudaDeviceGetStreamPriorityRange", [&] {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return stream_api("cudaStreamDestroy", stream, [](cudaStream_t on) {
    if (on->legacy) return cudaErrorInvalidResourceHandle;
    if (on->capture) breaks(on);
    engine().forget(on);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return stream_api("cudaStreamSynchronize", stream, [](cudaStream_t on) -> cudaError_t {
    if (on->capture) return breaks(on);
    if (on->legacy && legacy_breaks_a_capture(on->device)) return cudaErrorStreamCaptureImplicit;
    if (!on->legacy) return engine().wait(on->tail) ? cudaSuccess : cudaErrorLaunchTimeout;
    // What the legacy stream would wait for.
    const OperationRef marker =
        engine().append(on, {"cudaStreamSynchronize", Kind::kMarker, {}, {}, {}});
    return engine().wait(marker) ? cudaSuccess : cudaErrorLaunchTimeout;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return stream_api("cudaStreamQuery", stream, [](cudaStream_t on) -> cudaError_t {
    if (on->capture) return breaks(on);
    return engine().poll(on->tail) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return stream_api("cudaLaunchHostFunc", stream, [&](cudaStream_t on) {
    return engine().submit(
        on,
        {"cudaLaunchHostFunc", Kind::kHostFunction, {}, [function, data] { function(data); }, {}});
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return stream_api("cudaStreamBeginCapture", stream,
                    [&](cudaStream_t on) { return begin_capture(on, mode); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return stream_api("cudaStreamEndCapture", stream,
                    [&](cudaStream_t on) { return end_capture(on, graph); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return stream_api("cudaStreamIsCapturing", stream, [&](cudaStream_t on) {
    *status = !on->capture          ? cudaStreamCaptureStatusNone
              : on->capture->broken ? cudaStreamCaptureStatusInvalidated
                                    : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}
