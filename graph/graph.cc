#include "graph/graph.h"

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

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  for (const Value& value : graph.values) {
    if (value.role == Role::kParameter && !value.producer.valid())
      count += element_count(value.shape);
  }
  return count;
}

}  // namespace reprise::graph
