#pragma once

// Recording what is queued on streams into a graph, and the graphs.

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/double/engine.h"

struct CUgraphNode_st {
  reprise::test::cuda::Task task;
  std::vector<std::size_t> after;  // indices of nodes
  std::size_t lane = 0;            // which of the recorded streams it came from
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  std::size_t lanes = 0;
  bool alive = true;
};

namespace reprise::test::cuda {

struct Capture {
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  CUgraph_st* graph = nullptr;
  std::map<int, std::size_t> lanes;  // by the stream's number
  std::vector<cudaStream_t> streams;
  bool broken = false;
};

// All with the engine's mutex held.

// The task as a node behind what the stream recorded so far.
cudaError_t record(cudaStream_t stream, Task task);
// A call that must not be made while this stream records: breaks the recording.
cudaError_t breaks(cudaStream_t stream);
// Is some blocking stream of the device recording? Then the legacy stream must not be used; breaks
// the recording.
[[nodiscard]] bool legacy_breaks_a_capture(int device);
// A call that is unsafe while this thread records (cudaMalloc, cudaDeviceSynchronize, ...).
[[nodiscard]] cudaError_t unsafe_now();
// Lets a stream record into the same graph, behind these nodes.
cudaError_t join_capture(cudaStream_t stream, const std::shared_ptr<Capture>& capture,
                         const std::vector<std::size_t>& nodes);
[[nodiscard]] cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode);
[[nodiscard]] cudaError_t end_capture(cudaStream_t stream, cudaGraph_t* graph);
void reset_captures();

}  // namespace reprise::test::cuda
