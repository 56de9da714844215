#pragma once

// Graphs small enough to draw, shared by the tests of this folder.

#include <functional>
#include <string>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/graph.h"

namespace reprise::graph {

// The message of the Error(kInput) that `action` throws; "no error" if it throws none, and a note
// of the kind if it is of another.
inline std::string input_error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const base::Error& error) {
    if (error.kind() != base::ErrorKind::kInput) {
      return std::string("error of kind ") + base::error_kind_name(error.kind()) + ": " +
             error.what();
    }
    return error.what();
  }
  return "no error";
}

// x[4,3] ─▶ matmul ─▶ relu ─▶ mean_squared_error ─▶ loss      (one layer, no updates)
inline Graph one_layer() {
  Builder b("one_layer");
  const ValueId x = b.input("x", {4, 3});
  const ValueId target = b.input("target", {4, 2});
  const ValueId w = b.parameter("w", {2, 3});
  const ValueId y = b.relu(b.linear(x, w, "fc"), "act");
  b.set_loss(b.mean_squared_error(y, target, Reduction::kMean, "loss"));
  return b.finish();
}

// Every kind of line that a graph file has: running statistics, dropout, an accumulating node, an
// update by sgd with momentum, an assigned state, outputs.
//
//   x ─▶ batch_norm ─▶ dropout ─▶ reshape ─▶ matmul (w) ─▶ loss
//   dw = 2 matmuls, the second adds into the first;  w, w.momentum ─▶ sgd;  h' = x
inline Graph one_of_each() {
  Builder b("one of \"each\"");
  const ValueId x = b.input("x", {4, 2, 1, 3});
  const ValueId target = b.input("target", {4, 2});
  const ValueId gamma = b.parameter("bn.gamma", {2});
  const ValueId beta = b.parameter("bn.beta", {2}, false);
  const ValueId mean = b.state("bn.mean_running", {2});
  const ValueId var = b.state("bn.var_running", {2});
  const ValueId h = b.state("h", {4, 2, 1, 3});
  const ValueId w = b.parameter("w", {2, 6});
  const ValueId bn = b.batch_norm(x, gamma, beta, mean, var, 0.1, {.epsilon = 1.0 / 3.0}, "bn");
  const ValueId flat = b.flatten(b.dropout(bn, 0.3, "drop"), "flat");
  const ValueId y = b.linear(flat, w, "fc");
  b.set_loss(b.mean_squared_error(y, target, Reduction::kSum, "loss"));
  b.assign(h, x);
  const ValueId one =
      b.append(OpKind::kFill, {}, ShapeAttributes{{}, 1.0}, "grad/loss", Phase::kBackward)[0];
  const ValueId dy =
      b.append(OpKind::kMeanSquaredErrorGrad, {y, target, one},
               LossAttributes{.reduction = Reduction::kSum}, "grad/fc", Phase::kBackward)[0];
  const MatmulAttributes dy_x{.transpose_a = true};
  const ValueId part =
      b.append(OpKind::kMatmul, {dy, flat}, dy_x, "grad/w.part", Phase::kBackward)[0];
  const ValueId dw =
      b.append(OpKind::kMatmul, {dy, flat, part}, dy_x, "grad/w", Phase::kBackward, true)[0];
  const ValueId momentum = b.source("w.momentum", {2, 6}, DType::kF32, Role::kOptimizerState);
  SgdAttributes sgd;
  sgd.rate.base = 0.05;
  sgd.rate.kind = LearningRate::Kind::kCosine;
  sgd.rate.period_steps = 100;
  sgd.momentum = 0.9;
  const auto next = b.append(OpKind::kSgd, {w, dw, momentum}, sgd, "w.next", Phase::kUpdate);
  b.add_update(w, next[0]);
  b.add_update(momentum, next[1]);
  b.add_output(y);
  return b.finish();
}

// The ids of a value or node by name; invalid when there is none.
inline ValueId value_named(const Graph& graph, std::string_view name) {
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[ValueId(i)].name == name) return ValueId(i);
  }
  return {};
}
inline NodeId node_named(const Graph& graph, std::string_view name) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[NodeId(i)].name == name) return NodeId(i);
  }
  return {};
}

}  // namespace reprise::graph
