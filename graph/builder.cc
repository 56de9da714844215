#include "graph/builder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace reprise::graph {
namespace {

Role output_role(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return Role::kActivation;
    case Phase::kBackward:
      return Role::kGradient;
    case Phase::kUpdate:
      return Role::kUpdate;
  }
  return Role::kActivation;
}

// Names of the second and later outputs.
constexpr const char* kFurtherOutputs[][5] = {
    {"mean", "var"},                       // batch_norm, layer_norm
    {"gamma", "beta"},                     // their gradients
    {"var"},                               // batch_norm_update
    {"indices"},                           // max_pool
    {"h_n", "c_n", "saved"},               // lstm
    {"h0", "c0", "w_ih", "w_hh", "bias"},  // lstm_grad
    {"h_n", "saved"},                      // gru
    {"h0", "w_ih", "w_hh", "bias"},        // gru_grad
    {"momentum"},                          // sgd
    {"m", "v"},                            // adam
};

std::string output_suffix(OpKind op, std::size_t output) {
  using enum OpKind;
  if (output == 0) return "";
  int row = -1;
  if (op == kBatchNorm || op == kLayerNorm) row = 0;
  if (op == kBatchNormGrad || op == kLayerNormGrad) row = 1;
  if (op == kBatchNormUpdate) row = 2;
  if (op == kMaxPool) row = 3;
  if (op == kLstm) row = 4;
  if (op == kLstmGrad) row = 5;
  if (op == kGru) row = 6;
  if (op == kGruGrad) row = 7;
  if (op == kSgd) row = 8;
  if (op == kAdam) row = 9;
  REPRISE_CHECK(row >= 0 && output <= 5, "op '{}' has no name for output {}", op_info(op).name,
                output);
  return std::string(".") + kFurtherOutputs[row][output - 1];
}

bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == '-' || c == ':';
  });
}

}  // namespace

Builder::Builder(std::string graph_name) {
  graph_.name = std::move(graph_name);
}

Builder::Builder(Graph graph) : graph_(std::move(graph)) {
  for (const Value& value : graph_.values) value_names_.insert(value.name);
  for (const Update& update : graph_.updates) updated_.insert(update.initial);
  for (const Node& node : graph_.nodes) {
    node_names_.insert(node.name);
    if (node.op == OpKind::kDropout) {
      dropout_streams_ =
          std::max(dropout_streams_, std::get<DropoutAttributes>(node.attributes).stream + 1);
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
  std::size_t number = graph_.nodes.size();
  for (;; ++number) {
    std::string candidate = scoped(fmt::format("{}{}", op_info(op).name, number));
    if (!node_names_.contains(candidate) && !value_names_.contains(candidate)) return candidate;
  }
}

ValueId Builder::add_value(Value value) {
  if (!is_name(value.name)) {
    throw base::input_error("'{}' is no name: use letters, digits and _ . / - :", value.name);
  }
  if (!value_names_.insert(value.name).second) {
    throw base::input_error("graph '{}' already has a value named '{}'", graph_.name, value.name);
  }
  (void)element_count(value.shape);
  return graph_.values.push_back(std::move(value));
}

void Builder::check_known(ValueId value, const std::string& node) const {
  if (!value.valid() || !graph_.values.contains(value)) {
    throw base::input_error("node '{}': an input is no value of graph '{}'", node, graph_.name);
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
  const OpInfo& info = op_info(op);
  Node node;
  node.name = node_name(op, name);
  node.op = op;
  node.phase = phase;
  node.attributes = attributes;
  node.accumulate = accumulate;
  node.inputs = std::move(inputs);
  for (ValueId input : node.inputs) check_known(input, node.name);
  const auto sums = accumulate ? info.accumulated.size() : 0;
  const auto own = static_cast<std::int64_t>(node.inputs.size()) - static_cast<std::int64_t>(sums);
  if (accumulate && info.accumulated.empty()) {
    throw base::input_error("{} '{}' has no accumulate form", info.name, node.name);
  }
  if (own < info.min_inputs || (info.max_inputs >= 0 && own > info.max_inputs)) {
    throw base::input_error("{} '{}' takes {} to {} inputs, got {}", info.name, node.name,
                            info.min_inputs, info.max_inputs, own);
  }
  if (attributes.index() != info.attributes) {
    throw base::input_error("{} '{}' carries the attributes of another op", info.name, node.name);
  }
  const std::vector<InferredValue> inferred = info.infer(graph_, node);
  if (!node_names_.insert(node.name).second) {
    throw base::input_error("graph '{}' already has a node named '{}'", graph_.name, node.name);
  }
  const NodeId id(graph_.nodes.size());
  for (std::size_t i = 0; i < inferred.size(); ++i) {
    Value value;
    value.name = node.name + output_suffix(op, i);
    value.shape = inferred[i].shape;
    value.dtype = inferred[i].dtype;
    value.role = output_role(phase);
    value.producer = id;
    value.output = static_cast<std::uint32_t>(i);
    node.outputs.push_back(add_value(std::move(value)));
  }
  std::vector<ValueId> outputs = node.outputs;
  graph_.nodes.push_back(std::move(node));
  return outputs;
}

ValueId Builder::append_one(OpKind op, std::vector<ValueId> inputs, const Attributes& attributes,
                            std::string_view name) {
  return append(op, std::move(inputs), attributes, name)[0];
}

void Builder::add_update(ValueId initial, ValueId final) {
  if (!updated_.insert(initial).second) {
    throw base::input_error("'{}' already has an update", graph_.values[initial].name);
  }
  graph_.values[final].role = Role::kUpdate;
  graph_.updates.push_back({initial, final});
}

void Builder::assign(ValueId state, ValueId x, std::string_view name) {
  check_known(state, std::string(name));
  check_known(x, std::string(name));
  if (graph_.values[state].role != Role::kState) {
    throw base::input_error("assign: '{}' is no state but {}", graph_.values[state].name,
                            role_name(graph_.values[state].role));
  }
  if (shape(state) != shape(x)) {
    throw base::input_error("assign: state '{}' has shape {}, the new value {}",
                            graph_.values[state].name, shape_text(shape(state)),
                            shape_text(shape(x)));
  }
  assignments_.push_back(
      {state, x, name.empty() ? graph_.values[state].name + ".next" : scoped(name)});
}

void Builder::set_loss(ValueId scalar) {
  check_known(scalar, "loss");
  if (!shape(scalar).empty() || graph_.values[scalar].dtype != DType::kF32) {
    throw base::input_error("the loss must be a scalar f32, '{}' is {} {}",
                            graph_.values[scalar].name, dtype_name(graph_.values[scalar].dtype),
                            shape_text(shape(scalar)));
  }
  graph_.loss = scalar;
  if (std::find(graph_.outputs.begin(), graph_.outputs.end(), scalar) == graph_.outputs.end())
    add_output(scalar);
}

void Builder::add_output(ValueId value) {
  check_known(value, "output");
  if (std::find(graph_.outputs.begin(), graph_.outputs.end(), value) != graph_.outputs.end()) {
    throw base::input_error("'{}' already is an output", graph_.values[value].name);
  }
  graph_.outputs.push_back(value);
}

Graph Builder::finish() {
  prefix_.clear();
  for (const Assignment& a : std::exchange(assignments_, {})) {
    add_update(a.state,
               append(OpKind::kAssign, {a.state, a.x}, NoAttributes{}, a.name, Phase::kUpdate)[0]);
  }
  return std::exchange(graph_, Graph{});
}

}  // namespace reprise::graph
