#pragma once

// Models prepared without a backend: row-major bytes, and costs from flops and bytes moved
// (50 GFLOP/s, 10 GB/s). What planning needs to be exercised on real graphs.

#include <string>

#include "graph/autodiff.h"
#include "graph/prepared.h"
#include "models/model.h"
#include "planner/lowering.h"

namespace reprise::planner::testing {

inline double elements(const graph::Graph& g, graph::ValueId v) {
  return static_cast<double>(graph::element_count(g.values[v].shape));
}

inline double flops_of(const graph::Graph& g, const graph::Node& n) {
  using graph::OpKind;
  switch (n.op) {
    case OpKind::kConv2d:
    case OpKind::kConv2dGradInput: {  // pixels of y times the weights
      const graph::Shape& y =
          n.op == OpKind::kConv2d ? g.values[n.outputs[0]].shape : g.values[n.inputs[0]].shape;
      return 2.0 * static_cast<double>(y[0] * y[2] * y[3]) * elements(g, n.inputs[1]);
    }
    case OpKind::kConv2dGradWeight: {
      const graph::Shape& y = g.values[n.inputs[1]].shape;
      return 2.0 * static_cast<double>(y[0] * y[2] * y[3]) * elements(g, n.outputs[0]);
    }
    case OpKind::kMatmul: {
      const graph::Shape& y = g.values[n.outputs[0]].shape;
      return 2.0 * elements(g, n.outputs[0]) * elements(g, n.inputs[1]) /
             static_cast<double>(y.back());
    }
    case OpKind::kLstm:
    case OpKind::kLstmGrad: {
      const graph::Shape& x = g.values[n.inputs[0]].shape;
      const double weights = elements(g, n.inputs[3]) + elements(g, n.inputs[4]);
      return (n.op == OpKind::kLstm ? 2.0 : 4.0) * static_cast<double>(x[0] * x[1]) * weights;
    }
    default:
      return 0;
  }
}

inline graph::PreparedGraph prepare_without_backend(graph::Graph g) {
  graph::PreparedGraph p;
  p.graph = std::move(g);
  p.backend = "none";
  p.cost_source = "analytic";
  for (const graph::Value& v : p.graph.values) {
    p.value_bytes.push_back(graph::element_count(v.shape) * graph::dtype_bytes(v.dtype));
    p.value_layouts.push_back("plain");
  }
  for (const graph::Node& n : p.graph.nodes) {
    graph::PreparedNode node;
    node.flops = flops_of(p.graph, n);
    for (graph::ValueId v : n.inputs) node.bytes_moved += static_cast<double>(p.value_bytes[v]);
    for (graph::ValueId v : n.outputs) node.bytes_moved += static_cast<double>(p.value_bytes[v]);
    if (n.op == graph::OpKind::kReshape) node.bytes_moved = 0;
    node.cost_ns = static_cast<std::int64_t>(node.flops / 50 + node.bytes_moved / 10) + 200;
    node.inplace = graph::inplace_pairs(n);
    p.nodes.push_back(std::move(node));
  }
  return p;
}

inline graph::PreparedGraph prepare_training(const std::string& model,
                                             const models::ModelOptions& options) {
  graph::TrainingOptions training;
  training.optimizer = graph::SgdAttributes{.momentum = 0.9};
  return prepare_without_backend(
      graph::make_training_graph(models::make_model(model, options).graph, training).graph);
}

}  // namespace reprise::planner::testing
