#include "kernels/reference/booking.h"

#include <algorithm>
#include <cmath>

namespace reprise::kernels::reference {
namespace {

using graph::Bytes;
using graph::OpKind;
using graph::Shape;

// Nominal rates of plain loops on one core; the reference backend is for truth, not for speed.
constexpr double kNanosecondsPerFlop = 1.0;
constexpr double kNanosecondsPerByte = 0.25;

const Shape& input_shape(const graph::Graph& graph, const graph::Node& node, std::size_t i) {
  return graph.values[node.inputs[i]].shape;
}
const Shape& output_shape(const graph::Graph& graph, const graph::Node& node, std::size_t i) {
  return graph.values[node.outputs[i]].shape;
}

double elements(const Shape& shape) {
  return static_cast<double>(graph::element_count(shape));
}

// A multiply and an add for every weight [O,C/groups,KH,KW] that meets an element of y [N,O,P,Q].
double conv_flops(const Shape& y, const Shape& weight) {
  return 2.0 * elements(y) * elements(weight) / static_cast<double>(weight[0]);
}

// x [T,B,I] against w_ih [G,I], and h [T,B,R] against w_hh [G,R].
double recurrent_flops(const Shape& x, const Shape& w_ih, const Shape& w_hh) {
  return 2.0 * static_cast<double>(x[0] * x[1]) * (elements(w_ih) + elements(w_hh));
}

double flops(const graph::Graph& graph, const graph::Node& node) {
  const auto in = [&](std::size_t i) -> const Shape& { return input_shape(graph, node, i); };
  const auto out = [&](std::size_t i) -> const Shape& { return output_shape(graph, node, i); };
  switch (node.op) {
    case OpKind::kConv2d:
      return conv_flops(out(0), in(1));
    case OpKind::kConv2dGradInput:
      return conv_flops(in(0), in(1));
    case OpKind::kConv2dGradWeight:
      return conv_flops(in(1), out(0));
    case OpKind::kMatmul:
      // [..,M,K] x [..,K,P]: 2 M K P = 2 sqrt(MK * KP * MP), a batch of them times their number.
      return 2.0 * std::sqrt(elements(in(0)) * elements(in(1)) * elements(out(0)) /
                             elements(Shape(out(0).begin(), out(0).end() - 2)));
    case OpKind::kLstm:
      return recurrent_flops(in(0), in(3), in(4));
    case OpKind::kLstmGrad:
      return 2.0 * recurrent_flops(in(0), in(3), in(4));
    case OpKind::kGru:
      return recurrent_flops(in(0), in(2), in(3));
    case OpKind::kGruGrad:
      return 2.0 * recurrent_flops(in(0), in(2), in(3));
    case OpKind::kReshape:
      return 0.0;
    default: {  // about one per element of the largest operand
      double largest = 0.0;
      for (const graph::ValueId value : node.inputs)
        largest = std::max(largest, elements(graph.values[value].shape));
      for (const graph::ValueId value : node.outputs)
        largest = std::max(largest, elements(graph.values[value].shape));
      return largest;
    }
  }
}

// Rows of R doubles that the gradient of one sample passes from step to step (sequence.cc).
Bytes workspace_bytes(const graph::Graph& graph, const graph::Node& node) {
  Bytes rows = 0;
  if (node.op == OpKind::kLstmGrad) rows = 3;
  if (node.op == OpKind::kGruGrad) rows = 2;
  if (rows == 0) return 0;
  return rows * input_shape(graph, node, 1)[1] * static_cast<Bytes>(sizeof(double));
}

}  // namespace

graph::PreparedNode book(const graph::Graph& graph, const graph::Node& node,
                         const base::IdVector<graph::ValueId, Bytes>& value_bytes) {
  graph::PreparedNode booked;
  booked.workspace_bytes = workspace_bytes(graph, node);
  booked.flops = flops(graph, node);
  for (const graph::ValueId value : node.inputs)
    booked.bytes_moved += static_cast<double>(value_bytes[value]);
  for (const graph::ValueId value : node.outputs)
    booked.bytes_moved += static_cast<double>(value_bytes[value]);
  if (node.op == OpKind::kReshape) booked.bytes_moved = 0.0;  // it hands its bytes on
  booked.cost_ns = static_cast<std::int64_t>(
      std::ceil(booked.flops * kNanosecondsPerFlop + booked.bytes_moved * kNanosecondsPerByte));
  booked.inplace = graph::inplace_pairs(node);
  return booked;
}

}  // namespace reprise::kernels::reference
