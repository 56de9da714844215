#include "tests/cuda/double/capture.h"

#include <algorithm>
#include <set>

#include "tests/cuda/double/faults.h"

namespace reprise::test::cuda {
namespace {

std::vector<std::shared_ptr<Capture>> running;

// Everything that the nodes come after, themselves included.
std::set<std::size_t> with_all_before(const CUgraph_st& graph,
                                      const std::vector<std::size_t>& nodes) {
  std::set<std::size_t> found;
  std::vector<std::size_t> open = nodes;
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (!found.insert(node).second) continue;
    const auto& after = graph.nodes[node]->after;
    open.insert(open.end(), after.begin(), after.end());
  }
  return found;
}

bool all_joined(const Capture& capture) {
  const std::set<std::size_t> joined =
      with_all_before(*capture.graph, capture.origin->capture_tail);
  for (const cudaStream_t stream : capture.streams)
    for (const std::size_t node : stream->capture_tail)
      if (joined.count(node) == 0) return false;
  return true;
}

}  // namespace

cudaError_t record(cudaStream_t stream, Task task) {
  Capture& capture = *stream->capture;
  if (capture.broken) return cudaErrorStreamCaptureInvalidated;
  auto node = std::make_unique<CUgraphNode_st>();
  node->task = std::move(task);
  node->after = stream->capture_tail;
  node->lane = capture.lanes.emplace(stream->number, capture.graph->lanes).first->second;
  capture.graph->lanes = std::max(capture.graph->lanes, node->lane + 1);
  stream->capture_tail = {capture.graph->nodes.size()};
  capture.graph->nodes.push_back(std::move(node));
  return cudaSuccess;
}

cudaError_t breaks(cudaStream_t stream) {
  stream->capture->broken = true;
  return cudaErrorStreamCaptureUnsupported;
}

bool legacy_breaks_a_capture(int device) {
  bool any = false;
  for (const auto& capture : running)
    for (const cudaStream_t stream : capture->streams)
      if (stream->device == device && stream->blocking) any = capture->broken = true;
  return any;
}

cudaError_t unsafe_now() {
  for (const auto& capture : running) {
    const bool concerns = capture->mode == cudaStreamCaptureModeGlobal ||
                          (capture->mode == cudaStreamCaptureModeThreadLocal &&
                           capture->thread == std::this_thread::get_id());
    if (!concerns) continue;
    capture->broken = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return cudaSuccess;
}

cudaError_t join_capture(cudaStream_t stream, const std::shared_ptr<Capture>& capture,
                         const std::vector<std::size_t>& nodes) {
  if (stream->capture && stream->capture != capture) {
    stream->capture->broken = capture->broken = true;
    return cudaErrorStreamCaptureMerge;
  }
  if (!stream->capture) {
    stream->capture = capture;
    stream->capture_tail.clear();
    capture->streams.push_back(stream);
  }
  for (const std::size_t node : nodes)
    if (std::count(stream->capture_tail.begin(), stream->capture_tail.end(), node) == 0)
      stream->capture_tail.push_back(node);
  return cudaSuccess;
}

void reset_captures() {
  running.clear();
}

cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (stream->legacy) return cudaErrorStreamCaptureUnsupported;
  if (stream->capture) return cudaErrorIllegalState;
  const auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->graph = new CUgraph_st;
  running.push_back(capture);
  return join_capture(stream, capture, {});
}

cudaError_t end_capture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return cudaErrorIllegalState;
  if (capture->origin != stream) return cudaErrorStreamCaptureUnmatched;
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id())
    return cudaErrorStreamCaptureWrongThread;
  cudaError_t status = cudaSuccess;
  if (capture->broken)
    status = cudaErrorStreamCaptureInvalidated;
  else if (!all_joined(*capture))
    status = cudaErrorStreamCaptureUnjoined;
  for (const cudaStream_t each : capture->streams) {
    each->capture.reset();
    each->capture_tail.clear();
  }
  running.erase(std::find(running.begin(), running.end(), capture));
  if (status == cudaSuccess)
    *graph = capture->graph;
  else
    delete capture->graph;
  return status;
}

}  // namespace reprise::test::cuda
