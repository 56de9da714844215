#include "graph/builder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/names.h"
#include "graph/node_rules.h"

namespace reprise::graph {

Builder::Builder(std::string graph_name) {
  graph_.name = std::move(graph_name);
}

Builder::Builder(Graph graph) : graph_(std::move(graph)) {
  for (const Value& value : graph_.values) value_names_.insert(value.name);
  for (const Update& update : graph_.updates) updated_.insert(update.initial);
  for (const Node& node : graph_.nodes) {
    node_names_.insert(node.name);
    if (const auto* dropout = std::get_if<DropoutAttributes>(&node.attributes)) {
      dropout_streams_ = std::max(dropout_streams_, dropout->stream + 1);
    }
  }
}

Builder::Scope::Scope(Builder& builder, std::string_view prefix)
    : builder_(builder), length_(builder.prefix_.size()) {
  builder.prefix_ += prefix;
}

Builder::Scope::~Scope() {
  builder_.prefix_.resize(length_);
}

std::string Builder::scoped(std::string_view name) const {
  return prefix_ + std::string(name);
}

std::string Builder::node_name(OpKind op, std::string_view name) const {
  if (!name.empty()) return scoped(name);
  for (std::size_t number = graph_.nodes.size();; ++number) {
    std::string candidate = scoped(fmt::format("{}{}", op_info(op).name, number));
    if (!node_names_.contains(candidate) && !value_names_.contains(candidate)) return candidate;
  }
}

void Builder::check_new_value(const Value& value) const {
  if (!is_name(value.name)) {
    throw base::input_error("'{}' is no name of a value: use letters, digits and _ . / -",
                            value.name);
  }
  if (value_names_.contains(value.name)) {
    throw base::input_error("graph '{}' already has a value named '{}'", graph_.name, value.name);
  }
  check_shape(value.name, value.shape, value.dtype);
}

ValueId Builder::add_value(Value value) {
  value_names_.insert(value.name);
  return graph_.values.push_back(std::move(value));
}

void Builder::check_known(ValueId value, std::string_view user) const {
  if (!graph_.values.contains(value)) {
    throw base::input_error("{}: an input is no value of graph '{}'", user, graph_.name);
  }
}

ValueId Builder::source(std::string_view name, Shape shape, DType dtype, Role role,
                        bool trainable) {
  Value value;
  value.name = scoped(name);
  value.shape = std::move(shape);
  value.dtype = dtype;
  value.role = role;
  value.trainable = trainable;
  if (role != Role::kInput && !is_persistent(role)) {
    throw base::input_error("value '{}': nothing outside the step makes a value of role {}",
                            value.name, role_name(role));
  }
  if (trainable && role != Role::kParameter) {
    throw base::input_error("value '{}': only parameters are trainable, this is a value of role {}",
                            value.name, role_name(role));
  }
  check_new_value(value);
  return add_value(std::move(value));
}

ValueId Builder::input(std::string_view name, Shape shape, DType dtype) {
  return source(name, std::move(shape), dtype, Role::kInput);
}

ValueId Builder::parameter(std::string_view name, Shape shape, bool trainable) {
  return source(name, std::move(shape), DType::kF32, Role::kParameter, trainable);
}

ValueId Builder::state(std::string_view name, Shape shape) {
  return source(name, std::move(shape), DType::kF32, Role::kState);
}

std::vector<ValueId> Builder::append(OpKind op, std::vector<ValueId> inputs,
                                     const Attributes& attributes, std::string_view name,
                                     Phase phase, bool accumulate) {
  Node node;
  node.name = node_name(op, name);
  node.op = op;
  node.phase = phase;
  node.attributes = attributes;
  node.accumulate = accumulate;
  node.inputs = std::move(inputs);
  return append_node(std::move(node));
}

// Everything is checked before anything is added, so that a refused node leaves no trace.
std::vector<ValueId> Builder::append_node(Node node) {
  const std::vector<InferredValue> inferred = infer_checked(graph_, node);
  if (node_names_.contains(node.name)) {
    throw base::input_error("graph '{}' already has a node named '{}'", graph_.name, node.name);
  }
  std::vector<Value> values(inferred.size());
  for (std::size_t i = 0; i < inferred.size(); ++i) {
    values[i].name = output_name(node.op, node.name, i);
    values[i].shape = inferred[i].shape;
    values[i].dtype = inferred[i].dtype;
    values[i].role = output_role(node.op, node.phase);
    values[i].producer = NodeId(graph_.nodes.size());
    values[i].output = static_cast<std::uint32_t>(i);
    check_new_value(values[i]);
  }
  node_names_.insert(node.name);
  for (Value& value : values) node.outputs.push_back(add_value(std::move(value)));
  const NodeId id = graph_.nodes.push_back(std::move(node));
  return graph_.nodes[id].outputs;
}

ValueId Builder::append_one(OpKind op, std::vector<ValueId> inputs, const Attributes& attributes,
                            std::string_view name) {
  return append(op, std::move(inputs), attributes, name)[0];
}

void Builder::check_updatable(ValueId value, std::string_view user) const {
  check_known(value, user);
  const Value& v = graph_.values[value];
  if (v.producer.valid() || !is_persistent(v.role)) {
    throw base::input_error("{}: '{}' is no persistent value but has role {}", user, v.name,
                            role_name(v.role));
  }
  if (updated_.contains(value)) {
    throw base::input_error("{}: '{}' already has an update; it changes once a step", user, v.name);
  }
}

void Builder::add_update(ValueId initial, ValueId final) {
  check_updatable(initial, "update");
  check_known(final, "update");
  if (graph_.values[final].role != Role::kUpdate) {
    throw base::input_error(
        "update: '{}' has role {}; only sgd, adam, assign and "
        "batch_norm_update make the next version of a persistent value",
        graph_.values[final].name, role_name(graph_.values[final].role));
  }
  updated_.insert(initial);
  graph_.updates.push_back({initial, final});
}

void Builder::assign(ValueId state, ValueId x, std::string_view name) {
  check_updatable(state, "assign");
  check_known(x, "assign");
  const Value& variable = graph_.values[state];
  const Value& next = graph_.values[x];
  if (variable.shape != next.shape || variable.dtype != next.dtype) {
    throw base::input_error("assign: '{}' is {} {}, the new value '{}' is {} {}", variable.name,
                            dtype_name(variable.dtype), shape_text(variable.shape), next.name,
                            dtype_name(next.dtype), shape_text(next.shape));
  }
  const auto same = [&](const Assignment& other) { return other.state == state; };
  if (std::any_of(assignments_.begin(), assignments_.end(), same)) {
    throw base::input_error("assign: '{}' already has an update; it changes once a step",
                            variable.name);
  }
  assignments_.push_back({state, x, name.empty() ? variable.name + ".next" : scoped(name)});
}

void Builder::set_loss(ValueId scalar) {
  check_known(scalar, "loss");
  const Value& loss = graph_.values[scalar];
  if (!loss.shape.empty() || loss.dtype != DType::kF32) {
    throw base::input_error("the loss must be a scalar f32, '{}' is {} {}", loss.name,
                            dtype_name(loss.dtype), shape_text(loss.shape));
  }
  graph_.loss = scalar;
  add_output(scalar);
}

void Builder::add_output(ValueId value) {
  check_known(value, "output");
  if (std::find(graph_.outputs.begin(), graph_.outputs.end(), value) == graph_.outputs.end()) {
    graph_.outputs.push_back(value);
  }
}

Graph Builder::finish() {
  for (Assignment& a : std::exchange(assignments_, {})) {
    Node node;
    node.name = std::move(a.name);
    node.op = OpKind::kAssign;
    node.phase = Phase::kUpdate;
    node.inputs = {a.state, a.x};
    const auto next = append_node(std::move(node));
    add_update(a.state, next[0]);
  }
  value_names_.clear();
  node_names_.clear();
  updated_.clear();
  dropout_streams_ = 0;
  Graph graph = std::exchange(graph_, Graph{});
  validate(graph);
  return graph;
}

}  // namespace reprise::graph
