// cudart: graphs made by recording, and their launch.

#include <fmt/format.h>
#include <set>

#include "tests/cuda/double/calls.h"
#include "tests/cuda/double/capture.h"
#include "tests/cuda/double/faults.h"

using namespace reprise::test::cuda;

struct CUgraphExec_st {
  struct Node {
    Task task;
    std::vector<std::size_t> after;
    std::size_t lane = 0;
    bool last = true;  // no other node comes after it
  };
  int number = 0;
  std::vector<Node> nodes;
  std::vector<Chain> chains;  // of each lane
  OperationRef latest;        // a launch comes after the one before
};

namespace {

std::set<cudaGraphExec_t>& live_graphs() {
  static auto* const graphs = new std::set<cudaGraphExec_t>;
  return *graphs;
}
int graph_numbers = 0;

void launch_nodes(CUgraphExec_st& graph, cudaStream_t stream) {
  std::vector<OperationRef> before;
  if (graph.latest) before.push_back(graph.latest);
  const std::string name = fmt::format("graph {}", graph.number);
  const OperationRef begin =
      engine().append(stream, {name + " begins", Kind::kMarker, {}, {}, {}}, before);
  std::vector<OperationRef> made;
  std::vector<OperationRef> ends{begin};
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const CUgraphExec_st::Node& node = graph.nodes[i];
    std::vector<OperationRef> after;
    for (const std::size_t other : node.after) after.push_back(made[other]);
    if (after.empty()) after.push_back(begin);
    made.push_back(engine().add(stream->device, graph.chains[node.lane],
                                fmt::format("in node {} of {}", i, name), node.task, after));
    if (node.last) ends.push_back(made.back());
  }
  graph.latest = engine().append(stream, {name + " ends", Kind::kMarker, {}, {}, {}}, ends);
  count_graph_launch();
}

}  // namespace

namespace reprise::test::cuda {

void reset_graphs() {
  for (const cudaGraphExec_t graph : live_graphs()) delete graph;
  live_graphs().clear();
  graph_numbers = 0;
}

}  // namespace reprise::test::cuda

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* result, cudaGraph_t graph, unsigned long long) {
  return device_api("cudaGraphInstantiate", [&] {
    auto* const made = new CUgraphExec_st;
    live_graphs().insert(made);
    made->number = ++graph_numbers;
    for (const auto& node : graph->nodes) {
      for (const std::size_t other : node->after) made->nodes[other].last = false;
      made->nodes.push_back({node->task, node->after, node->lane, true});
    }
    for (std::size_t lane = 0; lane < graph->lanes; ++lane)
      made->chains.push_back(engine().order().new_chain());
    *result = made;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* result, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(result, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t) {
  return device_api("cudaGraphUpload", [&] {
    return live_graphs().count(graph) > 0 ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return device_api("cudaGraphLaunch", [&]() -> cudaError_t {
    const cudaStream_t on = engine().resolve(stream);
    if (live_graphs().count(graph) == 0 || on == nullptr) {
      fault("cudaGraphLaunch with a graph or a stream that is not there");
      return cudaErrorInvalidResourceHandle;
    }
    if (on->capture) return breaks(on);  // a child graph: the double has none
    launch_nodes(*graph, on);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return device_api("cudaGraphExecDestroy", [&] {
    if (live_graphs().erase(graph) == 0) return cudaErrorInvalidValue;
    delete graph;  // a launch that still runs has what it needs
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return device_api("cudaGraphDestroy", [&] {
    if (graph == nullptr) return cudaErrorInvalidValue;
    delete graph;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return device_api("cudaGraphGetNodes", [&] {
    if (nodes == nullptr) {
      *count = graph->nodes.size();
      return cudaSuccess;
    }
    for (std::size_t i = 0; i < *count; ++i)
      nodes[i] = i < graph->nodes.size() ? graph->nodes[i].get() : nullptr;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return device_api("cudaGraphNodeGetType", [&] {
    switch (node->task.kind) {
      case Kind::kCopy:
        *type = cudaGraphNodeTypeMemcpy;
        break;
      case Kind::kFill:
        *type = cudaGraphNodeTypeMemset;
        break;
      case Kind::kHostFunction:
        *type = cudaGraphNodeTypeHost;
        break;
      default:
        *type = cudaGraphNodeTypeKernel;
        break;
    }
    return cudaSuccess;
  });
}
