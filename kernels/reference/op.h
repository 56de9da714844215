#pragma once

// What a reference kernel sees: one node, its shapes, and its operands as plain row-major arrays
// (f32 as double).

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/random.h"
#include "kernels/backend.h"

namespace reprise::kernels::reference {

using graph::Dim;
using graph::Shape;

class Op {
 public:
  Op(const graph::Graph& graph, const graph::Node& node, const Call& call,
     const graph::StepContext& context)
      : graph_(graph), node_(node), call_(call), context_(context) {}

  [[nodiscard]] std::size_t inputs() const { return node_.inputs.size(); }
  [[nodiscard]] const Shape& in_shape(std::size_t i) const {
    return graph_.values[node_.inputs[i]].shape;
  }
  [[nodiscard]] const Shape& out_shape(std::size_t i = 0) const {
    return graph_.values[node_.outputs[i]].shape;
  }
  [[nodiscard]] Dim in_count(std::size_t i) const { return graph::element_count(in_shape(i)); }
  [[nodiscard]] Dim out_count(std::size_t i = 0) const {
    return graph::element_count(out_shape(i));
  }
  [[nodiscard]] bool in_is_float(std::size_t i) const {
    return graph_.values[node_.inputs[i]].dtype == graph::DType::kF32;
  }

  [[nodiscard]] const double* in(std::size_t i) const {
    return reinterpret_cast<const double*>(call_.inputs[i]);
  }
  [[nodiscard]] double* out(std::size_t i = 0) const {
    return reinterpret_cast<double*>(call_.outputs[i]);
  }
  [[nodiscard]] const std::int32_t* in_int(std::size_t i) const {
    return reinterpret_cast<const std::int32_t*>(call_.inputs[i]);
  }
  [[nodiscard]] std::int32_t* out_int(std::size_t i = 0) const {
    return reinterpret_cast<std::int32_t*>(call_.outputs[i]);
  }
  [[nodiscard]] const std::uint8_t* in_u8(std::size_t i) const {
    return reinterpret_cast<const std::uint8_t*>(call_.inputs[i]);
  }
  [[nodiscard]] std::uint8_t* out_u8(std::size_t i) const {
    return reinterpret_cast<std::uint8_t*>(call_.outputs[i]);
  }

  template <class T>
  [[nodiscard]] const T& attributes() const {
    return std::get<T>(node_.attributes);
  }
  [[nodiscard]] const graph::StepContext& context() const { return context_; }
  [[nodiscard]] bool accumulates() const { return node_.accumulate; }

  // Clears output `i`, unless it is a running sum that the node adds into.
  void start_sum(std::size_t i = 0) const;

  // ids or labels out of range, by name.
  [[nodiscard]] base::Error out_of_range(std::size_t input, Dim index, std::int64_t found,
                                         Dim limit) const {
    return base::input_error("node '{}': element {} of '{}' is {}, which is outside of [0, {})",
                             node_.name, index, graph_.values[node_.inputs[input]].name, found,
                             limit);
  }

 private:
  const graph::Graph& graph_;
  const graph::Node& node_;
  const Call& call_;
  const graph::StepContext& context_;
};

// One function per op; the table (table.cc) lists them.
using Kernel = void (*)(const Op&);
[[nodiscard]] Kernel find_kernel(graph::OpKind kind);

void conv2d(const Op&), conv2d_grad_input(const Op&), conv2d_grad_weight(const Op&);
void matmul(const Op&), bias_grad(const Op&);
void batch_norm(const Op&), batch_norm_grad(const Op&), batch_norm_inference(const Op&),
    batch_norm_update(const Op&);
void layer_norm(const Op&), layer_norm_grad(const Op&);
void relu(const Op&), relu_grad(const Op&), sigmoid(const Op&), sigmoid_grad(const Op&),
    tanh(const Op&);
void tanh_grad(const Op&), gelu(const Op&), gelu_grad(const Op&), add(const Op&), mul(const Op&),
    scale(const Op&);
void dropout(const Op&), positive(const Op&);
void max_pool(const Op&), max_pool_grad(const Op&), avg_pool(const Op&), avg_pool_grad(const Op&);
void global_avg_pool(const Op&), global_avg_pool_grad(const Op&), upsample(const Op&),
    upsample_grad(const Op&);
void copy(const Op&), concat(const Op&), slice(const Op&), slice_grad(const Op&),
    broadcast(const Op&);
void reduce_sum(const Op&), reduce_mean(const Op&), fill(const Op&);
void embedding(const Op&), embedding_grad(const Op&), lstm(const Op&), lstm_grad(const Op&),
    gru(const Op&);
void gru_grad(const Op&);
void softmax_cross_entropy(const Op&), softmax_cross_entropy_grad(const Op&),
    correct_count(const Op&);
void mean_squared_error(const Op&), mean_squared_error_grad(const Op&);
void sgd(const Op&), adam(const Op&), assign(const Op&);

}  // namespace reprise::kernels::reference
