// The rules of a graph, one function per group, each O(values + nodes). What forced in-place
// writes and updates must obey sits in validate_inplace.cc.

#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "graph/names.h"
#include "graph/node_rules.h"
#include "graph/validate_inplace.h"

namespace reprise::graph {
namespace {

void check_names(const Graph& graph) {
  std::unordered_set<std::string_view> seen;
  const auto check = [&](const std::string& name, const char* what) {
    if (!is_name(name)) {
      throw base::input_error(
          "graph '{}': '{}' is no name of a {}: use letters, digits and _ . / -", graph.name, name,
          what);
    }
    if (!seen.insert(name).second) {
      throw base::input_error("graph '{}' has two {}s named '{}'", graph.name, what, name);
    }
  };
  for (const Value& value : graph.values) check(value.name, "value");
  seen.clear();
  for (const Node& node : graph.nodes) check(node.name, "node");
}

// A value from outside has a role that says who writes it; the others name the node that makes
// them.
void check_value(const Graph& graph, ValueId id) {
  const Value& value = graph.values[id];
  check_shape(value.name, value.shape, value.dtype);
  if (value.trainable && value.role != Role::kParameter) {
    throw base::input_error("value '{}': only parameters are trainable, its role is {}", value.name,
                            role_name(value.role));
  }
  if (!value.producer.valid()) {
    if (value.role != Role::kInput && !is_persistent(value.role)) {
      throw base::input_error("value '{}' of role {} is made by no node", value.name,
                              role_name(value.role));
    }
    if (value.output != 0) {
      throw base::input_error("value '{}' is made by no node, yet is its output {}", value.name,
                              value.output);
    }
    return;
  }
  if (!graph.nodes.contains(value.producer)) {
    throw base::input_error("value '{}': its producer is node {} of {}", value.name,
                            value.producer.index(), graph.nodes.size());
  }
  const Node& producer = graph.nodes[value.producer];
  if (value.output >= producer.outputs.size() || producer.outputs[value.output] != id) {
    throw base::input_error("value '{}' says that it is output {} of node '{}', which has another",
                            value.name, value.output, producer.name);
  }
}

void check_order(const Graph& graph, NodeId id) {
  for (ValueId input : graph.nodes[id].inputs) {
    const NodeId producer = graph.values[input].producer;
    if (producer.valid() && producer >= id) {
      throw base::input_error(
          "node '{}' (number {}) reads '{}' before node '{}' (number {}) makes it",
          graph.nodes[id].name, id.index(), graph.values[input].name, graph.nodes[producer].name,
          producer.index());
    }
  }
}

void check_outputs(const Graph& graph, NodeId id, const std::vector<InferredValue>& inferred) {
  const Node& node = graph.nodes[id];
  const std::string_view op = op_info(node.op).name;
  if (node.outputs.size() != inferred.size()) {
    throw base::input_error("{} '{}' makes {} outputs, the node lists {}", op, node.name,
                            inferred.size(), node.outputs.size());
  }
  for (std::size_t i = 0; i < inferred.size(); ++i) {
    if (!graph.values.contains(node.outputs[i])) {
      throw base::input_error("{} '{}': output {} is no value of graph '{}'", op, node.name, i,
                              graph.name);
    }
    const Value& value = graph.values[node.outputs[i]];
    if (value.producer != id || value.output != i) {
      throw base::input_error("{} '{}': output {}, '{}', says that something else makes it", op,
                              node.name, i, value.name);
    }
    if (value.shape != inferred[i].shape || value.dtype != inferred[i].dtype) {
      throw base::input_error("{} '{}': output '{}' is {} {}, the op makes {} {}", op, node.name,
                              value.name, dtype_name(value.dtype), shape_text(value.shape),
                              dtype_name(inferred[i].dtype), shape_text(inferred[i].shape));
    }
    const Role expected = output_role(node.op, node.phase);
    if (value.role != expected) {
      throw base::input_error("{} '{}': output '{}' has role {}, in phase {} it is {}", op,
                              node.name, value.name, role_name(value.role), phase_name(node.phase),
                              role_name(expected));
    }
  }
}

void check_node(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  if (static_cast<std::size_t>(node.op) >= kOpKindCount) {
    throw base::input_error("node '{}': op number {} is beyond the {} known", node.name,
                            static_cast<int>(node.op), kOpKindCount);
  }
  const std::vector<InferredValue> inferred = infer_checked(graph, node);
  check_order(graph, id);
  check_outputs(graph, id, inferred);
}

// Two dropout ops on one stream would drop the same elements.
void check_streams(const Graph& graph) {
  std::unordered_map<std::int64_t, std::string_view> owners;
  for (const Node& node : graph.nodes) {
    if (node.op != OpKind::kDropout) continue;
    const std::int64_t stream = std::get<DropoutAttributes>(node.attributes).stream;
    const auto [owner, added] = owners.emplace(stream, node.name);
    if (!added) {
      throw base::input_error("dropout '{}' and dropout '{}' share random stream {}", owner->second,
                              node.name, stream);
    }
  }
}

void check_fetched(const Graph& graph) {
  std::unordered_set<ValueId> seen;
  for (ValueId output : graph.outputs) {
    if (!graph.values.contains(output)) {
      throw base::input_error("graph '{}': an output is no value of it", graph.name);
    }
    if (!seen.insert(output).second) {
      throw base::input_error("graph '{}': '{}' is an output twice", graph.name,
                              graph.values[output].name);
    }
  }
  if (!graph.loss.valid()) return;
  if (!graph.values.contains(graph.loss)) {
    throw base::input_error("graph '{}': the loss is no value of it", graph.name);
  }
  const Value& loss = graph.values[graph.loss];
  if (!loss.shape.empty() || loss.dtype != DType::kF32) {
    throw base::input_error("the loss must be a scalar f32, '{}' is {} {}", loss.name,
                            dtype_name(loss.dtype), shape_text(loss.shape));
  }
}

}  // namespace

void validate(const Graph& graph) {
  check_names(graph);
  for (std::size_t i = 0; i < graph.values.size(); ++i) check_value(graph, ValueId(i));
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) check_node(graph, NodeId(i));
  check_streams(graph);
  check_fetched(graph);
  check_updates(graph);
  check_inplace_writes(graph);
}

}  // namespace reprise::graph
