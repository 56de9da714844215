#pragma once

// What a reference kernel sees: one node, its shapes, and its operands as plain row-major arrays
// (f32 and bf16 as double). What it writes to a bf16 output is rounded afterwards (program.cc).

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

// f32 and bf16 are stored as double, everything else as it is.
[[nodiscard]] inline Dim stored_element_bytes(graph::DType dtype) {
  return graph::is_float(dtype) ? static_cast<Dim>(sizeof(double)) : graph::dtype_bytes(dtype);
}

// The product of the axes, which prepare() has checked: kernels neither allocate nor check again.
[[nodiscard]] inline Dim elements(const Shape& shape) {
  Dim count = 1;
  for (const Dim dim : shape) count *= dim;
  return count;
}

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
  [[nodiscard]] Dim in_count(std::size_t i) const { return elements(in_shape(i)); }
  [[nodiscard]] Dim out_count(std::size_t i = 0) const { return elements(out_shape(i)); }
  [[nodiscard]] bool in_is_float(std::size_t i) const {
    return graph::is_float(graph_.values[node_.inputs[i]].dtype);
  }
  // Of one element of input `i` as stored.
  [[nodiscard]] Dim in_element_bytes(std::size_t i) const {
    return stored_element_bytes(graph_.values[node_.inputs[i]].dtype);
  }
  [[nodiscard]] const std::byte* in_bytes(std::size_t i) const { return call_.inputs[i]; }
  [[nodiscard]] std::byte* out_bytes(std::size_t i = 0) const { return call_.outputs[i]; }

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

  // Row `i` of `length` doubles of the workspace (booking.cc).
  [[nodiscard]] double* workspace_row(Dim i, Dim length) const {
    return reinterpret_cast<double*>(call_.workspace) + i * length;
  }

  [[nodiscard]] const std::string& name() const { return node_.name; }
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

// dense.cc
void conv2d(const Op& op);
void conv2d_grad_input(const Op& op);
void conv2d_grad_weight(const Op& op);
void matmul(const Op& op);
void bias_grad(const Op& op);

// norm.cc
void batch_norm(const Op& op);
void batch_norm_grad(const Op& op);
void batch_norm_inference(const Op& op);
void batch_norm_update(const Op& op);
void layer_norm(const Op& op);
void layer_norm_grad(const Op& op);

// norm_ranks.cc
void batch_norm_moments(const Op& op);
void batch_norm_combine(const Op& op);
void batch_norm_apply(const Op& op);
void batch_norm_grad_sums(const Op& op);
void batch_norm_grad_input(const Op& op);

// pointwise.cc
void relu(const Op& op);
void relu_grad(const Op& op);
void sigmoid(const Op& op);
void sigmoid_grad(const Op& op);
void tanh(const Op& op);
void tanh_grad(const Op& op);
void gelu(const Op& op);
void gelu_grad(const Op& op);
void add(const Op& op);
void mul(const Op& op);
void scale(const Op& op);
void dropout(const Op& op);
void positive(const Op& op);

// pool.cc
void max_pool(const Op& op);
void max_pool_grad(const Op& op);
void avg_pool(const Op& op);
void avg_pool_grad(const Op& op);
void global_avg_pool(const Op& op);
void global_avg_pool_grad(const Op& op);
void upsample(const Op& op);
void upsample_grad(const Op& op);

// shape.cc
void copy(const Op& op);
void concat(const Op& op);
void slice(const Op& op);
void slice_grad(const Op& op);
void broadcast(const Op& op);
void reduce_sum(const Op& op);
void reduce_mean(const Op& op);
void fill(const Op& op);

// sequence.cc
void embedding(const Op& op);
void embedding_grad(const Op& op);
void lstm(const Op& op);
void lstm_grad(const Op& op);
void gru(const Op& op);
void gru_grad(const Op& op);

// loss.cc
void softmax_cross_entropy(const Op& op);
void softmax_cross_entropy_grad(const Op& op);
void mean_squared_error(const Op& op);
void mean_squared_error_grad(const Op& op);
void correct_count(const Op& op);

// update.cc
void global_norm(const Op& op);
void sgd(const Op& op);
void adam(const Op& op);
void assign(const Op& op);

}  // namespace reprise::kernels::reference
