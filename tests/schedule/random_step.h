#pragma once

// Random small training-like steps (valid graphs: every node's shapes fit its op), and random
// orders of their nodes with recomputation.

#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"

#include "base/error.h"
#include "tests/schedule/random_problem.h"
#include "tests/schedule/small_graph.h"

namespace reprise::schedule::testing {

class RandomStep {
 public:
  explicit RandomStep(std::uint64_t seed) : random_(seed), maker_("random") {
    using graph::Role;
    for (std::int64_t i = draw(random_, 1, 2); i > 0; --i) {
      values_.push_back(maker_.outside(next("x"), vector_shape(), Role::kInput));
    }
    for (std::int64_t i = draw(random_, 1, 3); i > 0; --i) {
      parameters_.push_back(maker_.outside(next("w"), vector_shape(), Role::kParameter));
      values_.push_back(parameters_.back());
    }
    if (draw(random_, 0, 1) == 0) maker_.outside(next("s"), vector_shape(), Role::kState);
    for (std::int64_t i = draw(random_, 3, 9); i > 0; --i) add_node();
    for (ValueId parameter : parameters_) {
      if (draw(random_, 0, 3) > 0) add_update(parameter);
    }
    for (std::int64_t i = draw(random_, 0, 2); i > 0; --i) fetch();
    for (std::size_t i = 0; i < maker_.prepared().graph.nodes.size(); ++i) {
      const bool reshape = maker_.prepared().graph.nodes[NodeId(i)].op == graph::OpKind::kReshape;
      if (!reshape && draw(random_, 0, 2) == 0) {
        maker_.workspace(NodeId(i), draw(random_, 1, 150));
      }
      if (!reshape && draw(random_, 0, 3) == 0) {
        maker_.prepared().nodes[NodeId(i)].others = {{"other", draw(random_, 0, 1) * 64, 5}};
      }
    }
    maker_.prepared().graph.updates_last = draw(random_, 0, 1) == 0;
  }

  [[nodiscard]] const graph::PreparedGraph& prepared() { return maker_.prepared(); }
  [[nodiscard]] std::mt19937_64& random() { return random_; }

  // A schedule with some recomputation.
  [[nodiscard]] Schedule schedule() {
    const TestLowering lowering(prepared());
    for (int tries = 0;; ++tries) {
      REPRISE_CHECK(tries < 10000, "no order of the random step is an execution");
      const Order order = draw_order(random_, lowering.problem());
      if (!trace_order(lowering.problem(), order).fault) {
        return lowering.lower(order, draw_algorithms());
      }
    }
  }

 private:
  // One for each node.
  std::vector<std::int32_t> draw_algorithms() {
    std::vector<std::int32_t> algorithms;
    for (const graph::PreparedNode& node : prepared().nodes) {
      algorithms.push_back(static_cast<std::int32_t>(draw(random_, 0, std::ssize(node.others))));
    }
    return algorithms;
  }

  std::string next(const std::string& letter) { return fmt::format("{}{}", letter, count_++); }
  graph::Shape vector_shape() { return {draw(random_, 0, 2) == 0 ? 40 : 16}; }
  ValueId pick() {
    return values_[static_cast<std::size_t>(draw(random_, 0, std::ssize(values_) - 1))];
  }
  // A value of the shape of `like`, often `like` itself.
  ValueId pick_like(ValueId like) {
    const ValueId other = pick();
    return maker_.shape(other) == maker_.shape(like) ? other : like;
  }

  void add_node() {
    using graph::OpKind;
    const ValueId a = pick();
    const graph::Shape shape = maker_.shape(a);
    const std::string name = next("v");
    switch (draw(random_, 0, 4)) {
      case 0:
        values_.push_back(maker_.node(OpKind::kRelu, {a}, {{name, shape}}, {{0, 0}})[0]);
        return;
      case 1:
        values_.push_back(maker_.node(OpKind::kReluGrad, {a, pick_like(a)}, {{name, shape}},
                                      {{1, 0}, {0, 0}})[0]);
        return;
      case 2: {
        graph::Shape view = shape;
        if (view.size() == 1) {
          view.insert(view.begin(), 1);
        } else {
          view.erase(view.begin());
        }
        values_.push_back(maker_.node(OpKind::kReshape, {a}, {{name, view}}, {},
                                      graph::ShapeAttributes{.shape = view})[0]);
        return;
      }
      case 3: {
        if (shape.size() != 1) return;
        const ValueId gamma = pick_like(a);
        const auto made = maker_.node(OpKind::kLayerNorm, {a, gamma, pick_like(a)},
                                      {{name, shape}, {name + ".mean", {}}, {name + ".var", {}}},
                                      {{0, 0}}, graph::NormAttributes{});
        values_.push_back(made[0]);
        return;
      }
      default:
        values_.push_back(
            maker_.node(OpKind::kAdd, {a, pick_like(a)}, {{name, shape}}, {{0, 0}, {1, 0}})[0]);
        return;
    }
  }

  void add_update(ValueId parameter) {
    const ValueId gradient = pick_like(parameter);
    if (root(gradient) == parameter) return;
    const ValueId updated =
        maker_.node(graph::OpKind::kSgd, {parameter, gradient},
                    {{next("u"), maker_.shape(parameter), graph::Role::kUpdate}}, {{0, 0, true}},
                    graph::SgdAttributes{})[0];
    maker_.update(parameter, updated);
    // Whoever comes later would have to read the parameter before this.
    std::erase_if(values_, [&](ValueId value) { return root(value) == parameter; });
  }

  void fetch() {
    for (int tries = 0; tries < 5; ++tries) {
      const ValueId value = pick();
      const std::vector<ValueId>& fetched = maker_.prepared().graph.outputs;
      if (std::count(fetched.begin(), fetched.end(), value) > 0) continue;
      maker_.fetch(value);
      return;
    }
  }

  ValueId root(ValueId value) {
    const graph::Graph& graph = maker_.prepared().graph;
    while (graph.values[value].producer.valid() &&
           graph.nodes[graph.values[value].producer].op == graph::OpKind::kReshape) {
      value = graph.nodes[graph.values[value].producer].inputs[0];
    }
    return value;
  }

  std::mt19937_64 random_;
  GraphMaker maker_;
  std::vector<ValueId> values_, parameters_;
  int count_ = 0;
};

}  // namespace reprise::schedule::testing
