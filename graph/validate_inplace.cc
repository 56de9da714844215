// A node with a forced in-place pair destroys its input:
//
//    sum ──┬─▶ conv2d_grad_weight ─▶ dw      (dw has the bytes of sum)
//          └─▶ add                            fine before the write, wrong after it
//
// Reshapes share bytes, so readers count per storage: a value without a reshape as producer, and
// all reshapes of it.

#include "graph/validate_inplace.h"

#include <unordered_map>
#include <unordered_set>

#include "base/error.h"

namespace reprise::graph {
namespace {

std::string described(const Node& node) {
  return fmt::format("{} '{}'", op_info(node.op).name, node.name);
}

// The storage of each value, in one pass over the nodes (chains of reshapes may be long).
base::IdVector<ValueId, ValueId> storage_of_values(const Graph& graph) {
  base::IdVector<ValueId, ValueId> storage(graph.values.size());
  for (std::size_t i = 0; i < graph.values.size(); ++i) storage[ValueId(i)] = ValueId(i);
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::kReshape) storage[node.outputs[0]] = storage[node.inputs[0]];
  }
  return storage;
}

struct Writes {
  const Graph& graph;
  base::IdVector<ValueId, ValueId> storage;
  base::IdVector<ValueId, NodeId> last_reader;  // of each storage
  std::unordered_set<ValueId> fetched;          // storages
};

Writes collect(const Graph& graph) {
  Writes writes{graph, storage_of_values(graph), {}, {}};
  writes.last_reader.resize(graph.values.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (ValueId input : graph.nodes[NodeId(i)].inputs) {
      writes.last_reader[writes.storage[input]] = NodeId(i);
    }
  }
  for (ValueId output : graph.outputs) writes.fetched.insert(writes.storage[output]);
  if (graph.loss.valid()) writes.fetched.insert(writes.storage[graph.loss]);
  return writes;
}

void check_write(const Writes& writes, NodeId id, ValueId written) {
  const Graph& graph = writes.graph;
  const Node& node = graph.nodes[id];
  const std::string& name = graph.values[written].name;
  const ValueId storage = writes.storage[written];
  const NodeId last = writes.last_reader[storage];
  if (last != id) {
    throw base::input_error(
        "{} (number {}) overwrites '{}' in place, {} (number {}) reads it later", described(node),
        id.index(), name, described(graph.nodes[last]), last.index());
  }
  int reads = 0;
  for (ValueId input : node.inputs) reads += writes.storage[input] == storage ? 1 : 0;
  if (reads > 1) {
    throw base::input_error("{} overwrites '{}' in place and also reads it as another input",
                            described(node), name);
  }
  if (writes.fetched.contains(storage)) {
    throw base::input_error("{} overwrites '{}' in place, which is an output or the loss",
                            described(node), name);
  }
}

// A running sum starts as a value that a node made; batch data, persistent values and their next
// versions are not to be added into.
void check_sum(const Writes& writes, const Node& node, ValueId sum) {
  const Value& value = writes.graph.values[writes.storage[sum]];
  if (value.role != Role::kActivation && value.role != Role::kGradient) {
    throw base::input_error("{} accumulates into '{}' of role {}; a running sum is made by a node",
                            described(node), value.name, role_name(value.role));
  }
}

void check_update(const Graph& graph, const Update& update) {
  for (ValueId id : {update.initial, update.final}) {
    if (!graph.values.contains(id)) {
      throw base::input_error("graph '{}': an update names no value of it", graph.name);
    }
  }
  const Value& initial = graph.values[update.initial];
  const Value& final = graph.values[update.final];
  if (initial.producer.valid() || !is_persistent(initial.role)) {
    throw base::input_error("update '{}' -> '{}': the first is no persistent value, its role is {}",
                            initial.name, final.name, role_name(initial.role));
  }
  if (initial.role == Role::kParameter && !initial.trainable) {
    throw base::input_error("update '{}' -> '{}': the parameter is frozen", initial.name,
                            final.name);
  }
  if (final.producer.valid()) {
    const Node& node = graph.nodes[final.producer];
    for (const InplacePair& pair : op_info(node.op).inplace) {
      if (pair.forced && pair.output == static_cast<std::int32_t>(final.output) &&
          node.inputs[static_cast<std::size_t>(pair.input)] == update.initial) {
        return;
      }
    }
  }
  throw base::input_error("update '{}' -> '{}': no update op makes the second from the first",
                          initial.name, final.name);
}

}  // namespace

void check_updates(const Graph& graph) {
  std::unordered_set<ValueId> initial, final;
  for (const Update& update : graph.updates) {
    check_update(graph, update);
    if (!initial.insert(update.initial).second) {
      throw base::input_error("'{}' has two updates; it changes once a step",
                              graph.values[update.initial].name);
    }
    final.insert(update.final);
  }
  for (const Value& value : graph.values) {
    if (value.role != Role::kUpdate) continue;
    const Node& node = graph.nodes[value.producer];
    if (!final.contains(node.outputs[value.output])) {
      throw base::input_error("{} makes '{}', which is listed as the update of nothing",
                              described(node), value.name);
    }
  }
}

void check_inplace_writes(const Graph& graph) {
  const Writes writes = collect(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[NodeId(i)];
    const std::size_t sums = node.accumulate ? op_info(node.op).accumulated.size() : 0;
    for (std::size_t k = node.inputs.size() - sums; k < node.inputs.size(); ++k) {
      check_sum(writes, node, node.inputs[k]);
    }
    for (const InplacePair& pair : inplace_pairs(node)) {
      if (pair.forced) {
        check_write(writes, NodeId(i), node.inputs[static_cast<std::size_t>(pair.input)]);
      }
    }
  }
}

}  // namespace reprise::graph
