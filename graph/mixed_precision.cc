#include "graph/mixed_precision.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/node_rules.h"

namespace reprise::graph {
namespace {

bool only_moves(OpKind op) {
  return op == OpKind::kReshape || op == OpKind::kSlice || op == OpKind::kConcat;
}

bool is_loss(OpKind op) {
  return op == OpKind::kSoftmaxCrossEntropy || op == OpKind::kMeanSquaredError;
}

class Rewriter {
 public:
  explicit Rewriter(const Graph& forward)
      : forward_(forward),
        placed_(forward.values.size()),
        cast_(forward.values.size()),
        stays_f32_(forward.values.size(), false) {
    made_.name = forward.name;
    made_.updates_last = forward.updates_last;
    for (std::size_t i = 0; i < forward.values.size(); ++i) place_source(ValueId(i));
  }

  Graph make() {
    bool assigns = false;
    for (std::size_t i = 0; i < forward_.nodes.size(); ++i) {
      const Node& node = forward_.nodes[NodeId(i)];
      // Assigned states are the last nodes with the last values: no cast comes in between.
      if (node.op == OpKind::kAssign && !std::exchange(assigns, true)) cast_assigned(i);
      place(node);
    }
    for (const ValueId output : forward_.outputs) made_.outputs.push_back(as(output, DType::kF32));
    for (const Update& update : forward_.updates)
      made_.updates.push_back({placed_[update.initial], placed_[update.final]});
    if (forward_.loss.valid()) made_.loss = placed_[forward_.loss];
    validate(made_);
    return std::move(made_);
  }

 private:
  void place_source(ValueId id) {
    const Value& value = forward_.values[id];
    if (value.dtype == DType::kBF16) {
      throw base::input_error("graph '{}': '{}' is bf16 already; mixed precision starts from f32",
                              forward_.name, value.name);
    }
    if (!value.producer.valid()) placed_[id] = made_.values.push_back(value);
  }

  void cast_assigned(std::size_t first) {
    for (std::size_t i = first; i < forward_.nodes.size(); ++i)
      for (const ValueId input : forward_.nodes[NodeId(i)].inputs) (void)as(input, DType::kF32);
    for (const ValueId output : forward_.outputs)
      if (placed_[output].valid()) (void)as(output, DType::kF32);
  }

  void place(Node node) {
    if (node.phase == Phase::kBackward) {
      throw base::input_error("graph '{}': '{}' is a backward node; mixed precision comes before",
                              forward_.name, node.name);
    }
    const OpInfo& info = op_info(node.op);
    mark(node);
    const bool in_bf16 = is_in_bf16(node, info);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool bf16 = in_bf16 && may_be_bf16(info, i);
      node.inputs[i] = as(node.inputs[i], bf16 ? DType::kBF16 : DType::kF32);
    }
    const std::vector<InferredValue> inferred = infer_checked(made_, node);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      Value value = forward_.values[node.outputs[i]];
      value.producer = NodeId(made_.nodes.size());
      value.dtype = inferred[i].dtype;
      const ValueId id = made_.values.push_back(std::move(value));
      placed_[node.outputs[i]] = id;
      node.outputs[i] = id;
    }
    made_.nodes.push_back(std::move(node));
  }

  // What a loss leads to is not rounded.
  void mark(const Node& node) {
    const bool from_loss =
        is_loss(node.op) || std::any_of(node.inputs.begin(), node.inputs.end(),
                                        [&](ValueId v) { return stays_f32_[v]; });
    for (const ValueId output : node.outputs) stays_f32_[output] = from_loss;
  }

  [[nodiscard]] bool is_in_bf16(const Node& node, const OpInfo& info) const {
    bool any = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!may_be_bf16(info, i)) continue;
      const ValueId input = node.inputs[i];
      const Value& value = forward_.values[input];
      if (value.dtype != DType::kF32 || value.shape.empty() || stays_f32_[input]) return false;
      any = any || !only_moves(node.op) || made_.values[placed_[input]].dtype == DType::kBF16;
    }
    return any;
  }

  // The value in this dtype; integers as they are.
  ValueId as(ValueId value, DType dtype) {
    const ValueId placed = placed_[value];
    const DType found = made_.values[placed].dtype;
    if (found == dtype || !is_float(found)) return placed;
    if (cast_[value].valid()) return cast_[value];
    Value made{.name = made_.values[placed].name + "." + dtype_name(dtype),
               .shape = made_.values[placed].shape,
               .dtype = dtype,
               .role = Role::kActivation,
               .producer = NodeId(made_.nodes.size())};
    const std::string name = made.name;
    cast_[value] = made_.values.push_back(std::move(made));
    made_.nodes.push_back({.name = name,
                           .op = OpKind::kCast,
                           .phase = Phase::kForward,
                           .attributes = CastAttributes{dtype},
                           .inputs = {placed},
                           .outputs = {cast_[value]}});
    return cast_[value];
  }

  const Graph& forward_;
  Graph made_;
  base::IdVector<ValueId, ValueId> placed_;  // of the given values
  base::IdVector<ValueId, ValueId> cast_;    // the same in the other dtype, where that is made
  base::IdVector<ValueId, bool> stays_f32_;
};

}  // namespace

Graph mixed_precision(const Graph& forward) {
  return Rewriter(forward).make();
}

}  // namespace reprise::graph
