#pragma once

// What a gradient rule sees and does. A rule appends the backward nodes of one forward node and
// hands what they compute to the gradients of the node's inputs.

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "graph/graph.h"

namespace reprise::graph {

// The gradient of a forward value as far as it has been added up.
struct PartialGradient {
  ValueId value;
  // Made for this forward value alone and read by nobody: an accumulating node may add into it in
  // place.
  bool owned = false;
};

using PartialGradients = base::IdVector<ValueId, std::optional<PartialGradient>>;

class GradientContext {
 public:
  GradientContext(Builder& builder, NodeId node, const base::IdVector<ValueId, bool>& wanted,
                  PartialGradients& gradients)
      : builder_(builder),
        node_(builder.graph().nodes[node]),
        wanted_(wanted),
        gradients_(gradients) {}

  [[nodiscard]] const Node& node() const { return node_; }
  [[nodiscard]] ValueId input(std::size_t i) const { return node_.inputs[i]; }
  [[nodiscard]] ValueId output(std::size_t i) const { return node_.outputs[i]; }
  [[nodiscard]] Shape shape(ValueId value) const { return builder_.shape(value); }
  [[nodiscard]] DType dtype(ValueId value) const { return builder_.graph().values[value].dtype; }
  template <class T>
  [[nodiscard]] const T& attributes() const {
    return std::get<T>(node_.attributes);
  }

  // Whether the gradient of input `i` is needed (graph/gradient_paths.h).
  [[nodiscard]] bool wants(std::size_t i) const {
    return i < node_.inputs.size() && wanted_[node_.inputs[i]];
  }
  [[nodiscard]] bool has_gradient(std::size_t output) const {
    return gradients_[node_.outputs[output]].has_value();
  }
  // The gradient of output `output`; zeros, made here, when the loss does not depend on it.
  [[nodiscard]] ValueId gradient(std::size_t output = 0);

  // Appends one backward node named "grad/<node>.<suffix>".
  std::vector<ValueId> append(OpKind op, std::vector<ValueId> inputs, const Attributes& attributes,
                              std::string_view suffix);
  // The same for an op with an accumulate form: its accumulated output k is the gradient of input
  // targets[k]. Where every target has a sum of its own already, the node adds into those in place;
  // else the parts are contributed.
  std::vector<ValueId> append_accumulating(OpKind op, std::vector<ValueId> inputs,
                                           const Attributes& attributes, std::string_view suffix,
                                           const std::vector<std::size_t>& targets);
  // Adds `gradient` to the gradient of input `i`, if anybody asks for it. A gradient has the dtype
  // of its value; one of f32 for a value that was cast to bf16 goes to what was cast, unrounded.
  void contribute(std::size_t i, ValueId gradient);
  // Whether a gradient of f32 for input `i` stays one: `i` is f32, or was cast from it.
  [[nodiscard]] bool keeps_f32(std::size_t i) const;

 private:
  // Whose gradient one of this dtype, for input `i`, is added to.
  [[nodiscard]] ValueId target(std::size_t i, DType gradient) const;
  [[nodiscard]] bool can_accumulate(const std::vector<std::size_t>& targets) const;

  Builder& builder_;
  const Node node_;  // a copy: appending moves the builder's nodes
  const base::IdVector<ValueId, bool>& wanted_;
  PartialGradients& gradients_;
};

}  // namespace reprise::graph
