#pragma once

// A training step of a deep convolutional net in outline: layers whose activations shrink stage by
// stage, in segments that are recomputed. For pictures and sizes; its shapes are only numbers.

#include <string>
#include <vector>

#include "fmt/format.h"

#include "tests/schedule/small_graph.h"

namespace reprise::schedule::testing {

struct LayeredStep {
  graph::PreparedGraph prepared;
  Schedule schedule;
};

inline LayeredStep layered_step(int layers, int segment, bool momentum) {
  using graph::OpKind;
  using graph::Role;
  GraphMaker g(fmt::format("layers{}", layers));
  const auto elements = [&](int layer) { return graph::Dim{1} << (20 - 4 * layer / layers); };
  const auto weights = [&](int layer) { return graph::Dim{1} << (12 + 6 * layer / layers); };
  const ValueId x = g.outside("images", {elements(0) / 2}, Role::kInput);
  const ValueId labels = g.outside("labels", {64}, Role::kInput);
  std::vector<ValueId> w, m, a{x};
  for (int i = 0; i < layers; ++i) {
    w.push_back(g.outside(fmt::format("layer{}.weight", i), {weights(i)}, Role::kParameter));
    if (momentum) {
      m.push_back(
          g.outside(fmt::format("layer{}.momentum", i), {weights(i)}, Role::kOptimizerState));
    }
  }
  const ValueId statistics = g.outside("statistics", {1 << 14}, Role::kState);
  std::vector<NodeId> forward, order;
  const auto last_node = [&] { return NodeId(g.prepared().graph.nodes.size() - 1); };
  for (int i = 0; i < layers; ++i) {
    const std::string name = fmt::format("layer{}.{}", i, i % 3 == 2 ? "add" : "conv");
    a.push_back(g.node(OpKind::kConv2d, {a.back(), w[static_cast<std::size_t>(i)]},
                       {{name, {elements(i)}}})[0]);
    forward.push_back(last_node());
    if (i % 3 == 0) g.workspace(last_node(), elements(i) * 2);
  }
  order = forward;
  ValueId gradient = g.node(OpKind::kSoftmaxCrossEntropyGrad, {a.back(), labels},
                            {{"loss.grad", {elements(layers - 1)}, Role::kGradient}})[0];
  order.push_back(last_node());
  for (int last = layers; last > 0; last -= segment) {
    const int first = std::max(last - segment, 0);
    for (int i = first; last < layers && i + 1 < last; ++i) {
      order.push_back(forward[static_cast<std::size_t>(i)]);
    }
    for (int i = last - 1; i >= first; --i) {
      const auto at = static_cast<std::size_t>(i);
      const ValueId gw =
          g.node(OpKind::kConv2dGradWeight, {a[at], gradient},
                 {{fmt::format("layer{}.weight.grad", i), {weights(i)}, Role::kGradient}})[0];
      order.push_back(last_node());
      if (i > 0) {
        gradient =
            g.node(OpKind::kConv2dGradInput, {gradient, w[at]},
                   {{fmt::format("layer{}.grad", i), {elements(i - 1)}, Role::kGradient}})[0];
        g.workspace(last_node(), elements(i));
        order.push_back(last_node());
      }
      std::vector<ValueId> inputs{w[at], gw};
      std::vector<GraphMaker::Made> outputs{
          {fmt::format("layer{}.weight.next", i), {weights(i)}, Role::kUpdate}};
      std::vector<graph::InplacePair> pairs{{0, 0, true}};
      if (momentum) {
        inputs.push_back(m[at]);
        outputs.push_back({fmt::format("layer{}.momentum.next", i), {weights(i)}, Role::kUpdate});
        pairs.push_back({2, 1, true});
      }
      const auto updated = g.node(OpKind::kSgd, inputs, outputs, pairs, graph::SgdAttributes{});
      g.update(w[at], updated[0]);
      if (momentum) g.update(m[at], updated[1]);
      order.push_back(last_node());
    }
  }
  g.update(statistics, g.node(OpKind::kAssign, {statistics, statistics},
                              {{"statistics.next", {1 << 14}, Role::kUpdate}}, {{0, 0, true}})[0]);
  order.push_back(last_node());
  LayeredStep step{std::move(g.prepared()), {}};
  const TestLowering lowering(step.prepared);
  step.schedule = lowering.lower(lowering.order(order));
  return step;
}

}  // namespace reprise::schedule::testing
