#include "kernels/cuda/tape.h"

#include "base/error.h"
#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {

CudaTape::~CudaTape() {
  (void)cudaSetDevice(device_->ordinal());
  (void)cudaStreamSynchronize(device_->compute());
  if (executable_ != nullptr) (void)cudaGraphExecDestroy(executable_);
}

void CudaTape::run(const std::function<void()>& queue) {
  if (executable_ == nullptr && warm_ && refused_.empty()) record(queue);
  if (executable_ != nullptr) {
    check(cudaGraphLaunch(executable_, device_->compute()), "cudaGraphLaunch");
    return;
  }
  queue();
  warm_ = true;
}

void CudaTape::record(const std::function<void()>& queue) {
  // Other threads of the process may call what a capture forbids: they have devices of their own.
  check(cudaStreamBeginCapture(device_->compute(), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    queue();
  } catch (const base::Error& error) {
    (void)cudaStreamEndCapture(device_->compute(), &graph);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    // A kernel that cannot be recorded may still run; one that cannot run says so again.
    refused_ = error.what();
    return;
  } catch (...) {
    (void)cudaStreamEndCapture(device_->compute(), &graph);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    throw;
  }
  cudaError_t status = cudaStreamEndCapture(device_->compute(), &graph);
  if (status == cudaSuccess) status = cudaGraphInstantiate(&executable_, graph, 0);
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    executable_ = nullptr;
    refused_ = cudaGetErrorString(status);
  }
}

}  // namespace reprise::kernels::cuda
