#include "graph/graph.h"

#include <algorithm>

namespace reprise::graph {

ValueId storage_root(const Graph& graph, ValueId value) {
  for (;;) {
    const NodeId producer = graph.values[value].producer;
    if (!producer.valid() || graph.nodes[producer].op != OpKind::kReshape) return value;
    value = graph.nodes[producer].inputs[0];
  }
}

base::IdVector<ValueId, std::vector<NodeId>> readers_of(const Graph& graph) {
  base::IdVector<ValueId, std::vector<NodeId>> readers(graph.values.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (ValueId input : graph.nodes[NodeId(i)].inputs) {
      auto& list = readers[input];
      if (list.empty() || list.back() != NodeId(i)) list.push_back(NodeId(i));
    }
  }
  return readers;
}

std::vector<NodeId> parameter_updates(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (const Update& update : graph.updates) {
    if (graph.values[update.initial].role != Role::kParameter) continue;
    const NodeId node = graph.values[storage_root(graph, update.final)].producer;
    if (node.valid()) nodes.push_back(node);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

std::vector<ValueId> final_gradients(const Graph& graph) {
  const std::vector<NodeId> updates = parameter_updates(graph);
  std::vector<ValueId> gradients;
  base::IdVector<ValueId, char> seen(graph.values.size(), 0);
  for (NodeId node : updates) {
    for (ValueId input : graph.nodes[node].inputs) {
      const ValueId root = storage_root(graph, input);
      const NodeId producer = graph.values[root].producer;
      if (!producer.valid() || std::binary_search(updates.begin(), updates.end(), producer))
        continue;
      if (seen[root] != 0) continue;
      seen[root] = 1;
      gradients.push_back(root);
    }
  }
  return gradients;
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  for (const Value& value : graph.values) {
    if (value.role == Role::kParameter && !value.producer.valid())
      count += element_count(value.shape);
  }
  return count;
}

}  // namespace reprise::graph
