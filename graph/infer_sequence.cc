// Embeddings and recurrent layers. T time steps, B batch, I input, R hidden size.

#include "graph/infer.h"

namespace reprise::graph {
namespace {

struct RecurrentShapes {
  DType type;  // of x, h, the weights and what is saved; bias, c and gradients of weights are f32
  Shape x, y, h, w_ih, w_hh, bias;
};

// The shapes around a layer with `gates` weight blocks and `biases` bias blocks, from x and h0.
RecurrentShapes recurrent(const InferContext& c, std::int64_t gates, std::int64_t biases) {
  const DType type = c.float_type({{0, "x"}, {1, "h0"}});
  c.require_rank(0, "x", 3);
  c.require_rank(1, "h0", 2);
  const Shape& x = c.shape(0);
  const Dim hidden = c.shape(1)[1];
  c.require(x[0] >= 1, "x {} has no time step", shape_text(x));
  c.require_shape(1, "h0", {x[1], hidden});
  return {.type = type,
          .x = x,
          .y = {x[0], x[1], hidden},
          .h = {x[1], hidden},
          .w_ih = {c.mul(gates, hidden, "w_ih"), x[2]},
          .w_hh = {c.mul(gates, hidden, "w_hh"), hidden},
          .bias = {c.mul(biases, hidden, "bias")}};
}

void require_weights(const InferContext& c, const RecurrentShapes& s, std::size_t first,
                     DType type) {
  c.require_operand(first, "w_ih", s.w_ih, type);
  c.require_operand(first + 1, "w_hh", s.w_hh, type);
  c.require_float(first + 2, "bias", s.bias);
}

void require_sums(const InferContext& c, const Node& node, const RecurrentShapes& s) {
  if (node.accumulate) require_weights(c, s, c.inputs() - 3, DType::kF32);
}

}  // namespace

Inferred infer_embedding(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  c.require_dtype(0, "table", DType::kF32);
  c.require_rank(0, "table", 2);
  c.require_dtype(1, "ids", DType::kI32);
  Shape y = c.shape(1);
  y.push_back(c.shape(0)[1]);
  return {{y}};
}

Inferred infer_embedding_grad(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const std::int64_t rows = c.attributes<EmbeddingAttributes>().rows;
  c.require(rows >= 1, "rows must be at least 1, got {}", rows);
  c.require_dtype(0, "ids", DType::kI32);
  c.require(!c.shape(1).empty(), "dy must have at least one axis");
  Shape dy = c.shape(0);
  dy.push_back(c.shape(1).back());
  c.require_float(1, "dy", dy);
  const Shape table{rows, dy.back()};
  if (node.accumulate) c.require_float(2, "sum", table);
  return {{table}};
}

Inferred infer_lstm(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const RecurrentShapes s = recurrent(c, 4, 4);
  c.require_float(2, "c0", s.h);
  require_weights(c, s, 3, s.type);
  return {{s.y, s.type},
          {s.h, s.type},
          {s.h},
          {Shape{s.y[0], s.y[1], c.mul(5, s.y[2], "saved")}, s.type}};
}

Inferred infer_lstm_grad(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const RecurrentShapes s = recurrent(c, 4, 4);
  c.require_float(2, "c0", s.h);
  require_weights(c, s, 3, s.type);
  c.require_operand(6, "y", s.y, s.type);
  c.require_operand(7, "h_n", s.h, s.type);
  c.require_float(8, "c_n", s.h);
  c.require_operand(9, "saved", {s.y[0], s.y[1], c.mul(5, s.y[2], "saved")}, s.type);
  c.require_operand(10, "dy", s.y, s.type);
  c.require_operand(11, "dh_n", s.h, s.type);
  c.require_float(12, "dc_n", s.h);
  require_sums(c, node, s);
  return {{s.x, s.type}, {s.h, s.type}, {s.h}, {s.w_ih}, {s.w_hh}, {s.bias}};
}

Inferred infer_gru(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const RecurrentShapes s = recurrent(c, 3, 4);
  require_weights(c, s, 2, s.type);
  return {{s.y, s.type}, {s.h, s.type}, {Shape{s.y[0], s.y[1], c.mul(4, s.y[2], "saved")}, s.type}};
}

Inferred infer_gru_grad(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const RecurrentShapes s = recurrent(c, 3, 4);
  require_weights(c, s, 2, s.type);
  c.require_operand(5, "y", s.y, s.type);
  c.require_operand(6, "h_n", s.h, s.type);
  c.require_operand(7, "saved", {s.y[0], s.y[1], c.mul(4, s.y[2], "saved")}, s.type);
  c.require_operand(8, "dy", s.y, s.type);
  c.require_operand(9, "dh_n", s.h, s.type);
  require_sums(c, node, s);
  return {{s.x, s.type}, {s.h, s.type}, {s.w_ih}, {s.w_hh}, {s.bias}};
}

}  // namespace reprise::graph
