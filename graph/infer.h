#pragma once

// Shape inference, one function per op (graph/op.h states the rules). Each throws Error(kInput)
// naming the node, the op and both numbers.

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"

namespace reprise::graph {

using Inferred = std::vector<InferredValue>;

Inferred infer_conv2d(const Graph& graph, const Node& node);
Inferred infer_conv2d_grad_input(const Graph& graph, const Node& node);
Inferred infer_conv2d_grad_weight(const Graph& graph, const Node& node);
Inferred infer_matmul(const Graph& graph, const Node& node);
Inferred infer_bias_grad(const Graph& graph, const Node& node);

Inferred infer_batch_norm(const Graph& graph, const Node& node);
Inferred infer_batch_norm_grad(const Graph& graph, const Node& node);
Inferred infer_batch_norm_inference(const Graph& graph, const Node& node);
Inferred infer_batch_norm_update(const Graph& graph, const Node& node);
Inferred infer_batch_norm_moments(const Graph& graph, const Node& node);
Inferred infer_batch_norm_combine(const Graph& graph, const Node& node);
Inferred infer_batch_norm_apply(const Graph& graph, const Node& node);
Inferred infer_batch_norm_grad_sums(const Graph& graph, const Node& node);
Inferred infer_batch_norm_grad_input(const Graph& graph, const Node& node);
Inferred infer_layer_norm(const Graph& graph, const Node& node);
Inferred infer_layer_norm_grad(const Graph& graph, const Node& node);

Inferred infer_unary(const Graph& graph, const Node& node);  // float x => y of the same shape
Inferred infer_same_pair(const Graph& graph,
                         const Node& node);                // two floats of one shape => the same
Inferred infer_add(const Graph& graph, const Node& node);  // the same, or two i32
Inferred infer_dropout(const Graph& graph, const Node& node);
Inferred infer_positive(const Graph& graph, const Node& node);
Inferred infer_cast(const Graph& graph, const Node& node);

Inferred infer_max_pool(const Graph& graph, const Node& node);
Inferred infer_max_pool_grad(const Graph& graph, const Node& node);
Inferred infer_avg_pool(const Graph& graph, const Node& node);
Inferred infer_avg_pool_grad(const Graph& graph, const Node& node);
Inferred infer_global_avg_pool(const Graph& graph, const Node& node);
Inferred infer_global_avg_pool_grad(const Graph& graph, const Node& node);
Inferred infer_upsample(const Graph& graph, const Node& node);
Inferred infer_upsample_grad(const Graph& graph, const Node& node);

Inferred infer_reshape(const Graph& graph, const Node& node);
Inferred infer_concat(const Graph& graph, const Node& node);
Inferred infer_slice(const Graph& graph, const Node& node);
Inferred infer_slice_grad(const Graph& graph, const Node& node);
Inferred infer_broadcast(const Graph& graph, const Node& node);
Inferred infer_reduce(const Graph& graph, const Node& node);
Inferred infer_fill(const Graph& graph, const Node& node);
Inferred infer_reorder(const Graph& graph, const Node& node);

Inferred infer_embedding(const Graph& graph, const Node& node);
Inferred infer_embedding_grad(const Graph& graph, const Node& node);
Inferred infer_lstm(const Graph& graph, const Node& node);
Inferred infer_lstm_grad(const Graph& graph, const Node& node);
Inferred infer_gru(const Graph& graph, const Node& node);
Inferred infer_gru_grad(const Graph& graph, const Node& node);

Inferred infer_softmax_cross_entropy(const Graph& graph, const Node& node);
Inferred infer_softmax_cross_entropy_grad(const Graph& graph, const Node& node);
Inferred infer_correct_count(const Graph& graph, const Node& node);
Inferred infer_mean_squared_error(const Graph& graph, const Node& node);
Inferred infer_mean_squared_error_grad(const Graph& graph, const Node& node);

Inferred infer_global_norm(const Graph& graph, const Node& node);
Inferred infer_sgd(const Graph& graph, const Node& node);
Inferred infer_adam(const Graph& graph, const Node& node);
Inferred infer_assign(const Graph& graph, const Node& node);
Inferred infer_all_reduce(const Graph& graph, const Node& node);
Inferred infer_await(const Graph& graph, const Node& node);

// What the functions above are written with: the inputs of one node, with checks that name it.
class InferContext {
 public:
  InferContext(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  [[nodiscard]] std::size_t inputs() const { return node_.inputs.size(); }
  [[nodiscard]] const Shape& shape(std::size_t input) const {
    return graph_.values[node_.inputs[input]].shape;
  }
  [[nodiscard]] DType dtype(std::size_t input) const {
    return graph_.values[node_.inputs[input]].dtype;
  }

  template <class T>
  [[nodiscard]] const T& attributes() const {
    const T* found = std::get_if<T>(&node_.attributes);
    if (found == nullptr) throw fail("carries the attributes of another op");
    return *found;
  }

  // A fault of this node: "conv2d 'layer1.conv': <message>".
  template <class... Args>
  [[nodiscard]] base::Error fail(fmt::format_string<Args...> format, Args&&... args) const {
    return base::input_error("{} '{}': {}", op_info(node_.op).name, node_.name,
                             fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void require(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (!condition) throw fail(format, std::forward<Args>(args)...);
  }

  void require_dtype(std::size_t input, std::string_view what, DType dtype) const;
  struct Operand {
    std::size_t input;
    std::string_view what;
  };
  // f32 or bf16, all of them alike. Inputs that the op's row does not let be bf16 never are
  // (graph/node_rules.h).
  [[nodiscard]] DType float_type(std::initializer_list<Operand> operands) const;
  void require_rank(std::size_t input, std::string_view what, std::size_t rank) const;
  void require_shape(std::size_t input, std::string_view what, const Shape& expected) const;
  // f32 of exactly this shape.
  void require_float(std::size_t input, std::string_view what, const Shape& expected) const;
  void require_operand(std::size_t input, std::string_view what, const Shape& expected,
                       DType type) const;
  // Two non-negative (or, with `minimum`, larger) numbers.
  void require_pair(const Ints& pair, std::string_view what, std::int64_t minimum) const;
  [[nodiscard]] std::int64_t axis(std::int64_t axis,
                                  const Shape& shape) const;  // checked against the rank
  // A shape that comes from attributes: every axis at least 1. Returns its number of elements.
  std::int64_t elements(const Shape& shape, std::string_view what) const;
  // a * b and a + b; a result beyond 2^63 is a fault of the node.
  [[nodiscard]] std::int64_t mul(std::int64_t a, std::int64_t b, std::string_view what) const;
  [[nodiscard]] std::int64_t add(std::int64_t a, std::int64_t b, std::string_view what) const;

 private:
  const Graph& graph_;
  const Node& node_;
};

}  // namespace reprise::graph
