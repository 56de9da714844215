#include "graph/autodiff.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/builder.h"
#include "tests/graph/graph_query.h"

namespace reprise::graph {
namespace {

using testing::HasSubstr;
using enum OpKind;

TrainingGraph trained(Builder& builder, const TrainingOptions& options = {}) {
  TrainingGraph made = make_training_graph(builder.finish(), options);
  validate(made.graph);
  return made;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}

bool has_gradient_of_shape(const Graph& graph, const Shape& shape) {
  return std::any_of(graph.values.begin(), graph.values.end(),
                     [&](const Value& v) { return v.role == Role::kGradient && v.shape == shape; });
}

// loss = sum(x W^T + b), x [3,2], W [1,2]: dW and db, but no buffer for dx.
TEST(Autodiff, MakesNoGradientOfAnInputNobodyAskedFor) {
  Builder b("first_layer");
  const ValueId x = b.input("x", {3, 2});
  b.set_loss(b.reduce_sum(b.linear(x, b.parameter("w", {1, 2}), b.parameter("b", {1}), "y")));
  const Graph graph = trained(b).graph;
  EXPECT_FALSE(has_gradient_of_shape(graph, {3, 2}));
  EXPECT_TRUE(has_gradient_of_shape(graph, {1, 2}));
  EXPECT_EQ(graph.updates.size(), 2U);
}

// h -> (2h, h > 0, 3h); the loss is the sum of the first, which is fetched, too.
TEST(Autodiff, DoesNothingForUnusedAndIntegerOutputs) {
  Builder b("three_outputs");
  const ValueId h = b.parameter("h", {2});
  const ValueId twice = b.scale(h, 2.0, "twice");
  b.add_output(b.positive(h, "is_positive"));
  b.add_output(b.scale(h, 3.0, "thrice"));
  b.add_output(twice);
  b.set_loss(b.reduce_sum(twice, {}, false, "loss"));
  const Graph graph = trained(b, {.update = false}).graph;
  // one; spread over [2]; times 2
  EXPECT_EQ(count_phase(graph, Phase::kBackward), 3U);
  EXPECT_EQ(nodes_of(graph, kScale).size(), 3U);
  EXPECT_TRUE(is_output(graph, twice));
  EXPECT_TRUE(is_output(graph, graph.loss));
}

TEST(Autodiff, AFetchedGradientThatTheLossDoesNotDependOnIsZeros) {
  Builder b("independent");
  const ValueId x = b.input("x", {2});
  b.add_output(b.scale(x, 2.0, "metric"));
  b.set_loss(b.reduce_sum(b.parameter("p", {2})));
  const Graph graph = trained(b, {.fetch_gradients = {x}}).graph;
  const ValueId dx = find_value(graph, "grad/x");
  ASSERT_TRUE(dx.valid());
  EXPECT_TRUE(is_output(graph, dx));
  const Node& zeros = graph.nodes[graph.values[dx].producer];
  EXPECT_EQ(zeros.op, kFill);
  EXPECT_EQ(std::get<ShapeAttributes>(zeros.attributes).value, 0.0);
}

// x -> A (trained) -> F (frozen) -> B (trained): the gradient passes F and leaves nothing there.
TEST(Autodiff, AFrozenParameterHasNoGradientAndNoState) {
  Builder b("frozen_middle");
  const ValueId x = b.input("x", {5, 2});
  ValueId y = b.linear(x, b.parameter("a", {3, 2}), "y1");
  y = b.linear(y, b.parameter("f", {4, 3}, false), "y2");
  y = b.linear(y, b.parameter("b", {7, 4}), "y3");
  b.set_loss(b.reduce_sum(y));
  const TrainingGraph made = trained(b, {.optimizer = SgdAttributes{.momentum = 0.9}});
  EXPECT_TRUE(made.warnings.empty());
  EXPECT_FALSE(has_gradient_of_shape(made.graph, {4, 3}));
  EXPECT_TRUE(has_gradient_of_shape(made.graph, {3, 2}));
  EXPECT_TRUE(has_gradient_of_shape(made.graph, {7, 4}));
  EXPECT_FALSE(find_value(made.graph, "f.momentum").valid());
  EXPECT_EQ(nodes_of(made.graph, kSgd).size(), 2U);
}

TEST(Autodiff, AnAllFrozenModelHasNoBackwardPart) {
  Builder b("frozen");
  const ValueId x = b.input("x", {5, 2});
  b.set_loss(b.reduce_sum(b.linear(x, b.parameter("a", {3, 2}, false))));
  const Graph forward = b.graph();
  EXPECT_EQ(trained(b).graph, forward);
}

TEST(Autodiff, AParameterOutsideTheLossStaysAndIsNamed) {
  Builder b("five_heads");
  const ValueId x = b.input("x", {5, 2});
  b.add_output(b.linear(x, b.parameter("head5.weight", {3, 2}), "head5"));
  b.set_loss(b.reduce_sum(b.linear(x, b.parameter("head1.weight", {3, 2}), "head1")));
  const TrainingGraph made =
      trained(b, {.optimizer = SgdAttributes{.momentum = 0.9, .weight_decay = 0.1}});
  ASSERT_EQ(made.warnings.size(), 1U);
  EXPECT_THAT(made.warnings[0], HasSubstr("'head5.weight'"));
  ASSERT_EQ(nodes_of(made.graph, kSgd).size(), 1U);
  EXPECT_FALSE(find_value(made.graph, "head5.weight.momentum").valid());
}

// y = x W W W: the three contributions to dW add up in place, the last reader's first.
TEST(Autodiff, ASharedWeightAddsUpInPlaceAndIsUpdatedOnce) {
  Builder b("shared");
  const ValueId w = b.parameter("w", {4, 4});
  ValueId y = b.input("x", {2, 4});
  for (const char* name : {"y1", "y2", "y3"}) y = b.matmul(y, w, {}, name);
  b.set_loss(b.reduce_sum(y));
  const Graph graph = trained(b).graph;
  std::vector<const Node*> parts;
  for (const Node& node : graph.nodes) {
    if (node.phase == Phase::kBackward && node.op == kMatmul &&
        graph.values[node.outputs[0]].shape == Shape{4, 4}) {
      parts.push_back(&node);
    }
  }
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_FALSE(parts[0]->accumulate);
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_TRUE(parts[i]->accumulate);
    EXPECT_EQ(parts[i]->inputs.back(), parts[i - 1]->outputs[0]);
  }
  ASSERT_EQ(nodes_of(graph, kSgd).size(), 1U);
  EXPECT_EQ(nodes_of(graph, kSgd)[0]->inputs[1], parts[2]->outputs[0]);
  EXPECT_TRUE(nodes_of(graph, kAdd).empty());
}

// The gradient of s = w + v is that of w and of v as well: adding x^T dy into it in place would
// spoil v's.
TEST(Autodiff, ASumThatOthersReadIsNotAddedInto) {
  Builder b("aliased");
  const ValueId w = b.parameter("w", {3, 3});
  const ValueId v = b.parameter("v", {3, 3});
  const ValueId y = b.matmul(b.input("x", {3, 3}), w, {}, "y");
  b.set_loss(b.reduce_sum(b.mul(y, b.add(w, v, "s"))));
  const Graph graph = trained(b).graph;
  for (const Node* node : nodes_of(graph, kMatmul)) EXPECT_FALSE(node->accumulate) << node->name;
  EXPECT_EQ(nodes_of(graph, kAdd).size(), 2U);  // s itself and dw
}

// One layer that reads the same weight as w_ih and w_hh has one sum for two outputs.
TEST(Autodiff, OneSumIsNotHandedOverTwice) {
  Builder b("tied_lstm");
  const ValueId x = b.input("x", {2, 1, 3});
  const ValueId h = b.fill({1, 3}, 0.0);
  const ValueId w = b.parameter("w", {12, 3});
  const ValueId bias = b.parameter("bias", {12});
  const auto first = b.lstm(x, h, h, w, w, bias, "first");
  const auto second = b.lstm(first.y, first.h_n, first.c_n, w, w, bias, "second");
  b.set_loss(b.reduce_sum(second.y));
  const Graph graph = trained(b).graph;
  ASSERT_EQ(nodes_of(graph, kLstmGrad).size(), 2U);
  for (const Node* node : nodes_of(graph, kLstmGrad)) EXPECT_FALSE(node->accumulate);
  EXPECT_EQ(nodes_of(graph, kSgd).size(), 2U);
}

TEST(Autodiff, UpdatesRunAsSoonAsTheirGradientIsFinal) {
  Builder b("two_layers");
  ValueId y = b.input("x", {5, 2});
  y = b.linear(y, b.parameter("w1", {3, 2}), "y1");
  y = b.linear(y, b.parameter("w2", {4, 3}), "y2");
  b.set_loss(b.reduce_sum(y));
  const Graph graph = trained(b).graph;
  // The last layer's weight changes before the first layer's gradient exists, and after the last
  // layer has read it for dx.
  const std::size_t update2 = node_position(graph, "update/w2");
  EXPECT_LT(node_position(graph, "grad/y2.da"), update2);
  EXPECT_LT(update2, node_position(graph, "grad/y1.db"));
  EXPECT_LT(node_position(graph, "grad/y1.db"), node_position(graph, "update/w1"));
}

// Truncated backpropagation: the backward part reads the state that the window started from.
TEST(Autodiff, StatesAreAssignedAfterTheBackwardPart) {
  Builder b("window");
  const ValueId h0 = b.state("h", {1, 3});
  const ValueId h1 = b.mul(b.parameter("w", {1, 3}), h0, "h1");
  b.assign(h0, h1);
  b.set_loss(b.reduce_sum(h1));
  const Graph graph = trained(b).graph;
  ASSERT_EQ(nodes_of(graph, kAssign).size(), 1U);
  EXPECT_EQ(graph.nodes[NodeId(graph.nodes.size() - 1)].op, kAssign);
  EXPECT_EQ(graph.updates.size(), 2U);
}

TEST(Autodiff, OptimizerStateHasTheShapeOfItsParameter) {
  const auto states = [](const Optimizer& optimizer) {
    Builder b("one_weight");
    b.set_loss(b.reduce_sum(b.parameter("w", {10, 100})));
    std::vector<std::string> names;
    for (const Value& value : trained(b, {.optimizer = optimizer}).graph.values) {
      if (value.role != Role::kOptimizerState) continue;
      EXPECT_EQ(value.shape, (Shape{10, 100}));
      names.push_back(value.name);
    }
    return names;
  };
  EXPECT_THAT(states(SgdAttributes{}), testing::IsEmpty());
  EXPECT_THAT(states(SgdAttributes{.momentum = 0.9}), testing::ElementsAre("w.momentum"));
  EXPECT_THAT(states(AdamAttributes{}), testing::ElementsAre("w.m", "w.v"));
}

TEST(Autodiff, EveryFetchedGradientIsAnOutputOfItsOwnName) {
  Builder b("fetch");
  const ValueId x = b.input("x", {2});
  const ValueId w = b.parameter("w", {2});
  b.set_loss(b.reduce_sum(b.add(x, w, "y")));  // dx, dw and dy are one and the same value
  const Graph graph = trained(b, {.fetch_gradients = {x, w}}).graph;
  for (const char* name : {"grad/x", "grad/w"}) {
    const ValueId gradient = find_value(graph, name);
    ASSERT_TRUE(gradient.valid()) << name;
    EXPECT_TRUE(is_output(graph, gradient)) << name;
    EXPECT_EQ(graph.values[gradient].shape, Shape{2});
  }
}

// An op without gradient stands twice between parameters and the loss, and once beside it.
TEST(Autodiff, ListsAllOpsThatTheGradientCannotPass) {
  Builder b("blocked");
  const ValueId mean = b.state("mean", {3});
  const ValueId var = b.state("var", {3});
  const ValueId one = b.fill({3}, 1.0);
  const auto norm = [&](ValueId x, const char* name) {
    return b.batch_norm_inference(x, one, one, mean, var, {}, name);
  };
  const ValueId x = b.input("x", {5, 2});
  const ValueId a = b.linear(x, b.parameter("wa", {3, 2}), "a");
  const ValueId c = b.linear(x, b.parameter("wc", {3, 2}), "c");
  b.add_output(norm(a, "metric"));
  b.set_loss(b.reduce_sum(b.add(norm(a, "norm_a"), norm(c, "norm_c"))));
  const std::string message = message_of([&] { trained(b); });
  EXPECT_THAT(message, HasSubstr("batch_norm_inference 'norm_a'"));
  EXPECT_THAT(message, HasSubstr("wa > a > norm_a"));
  EXPECT_THAT(message, HasSubstr("wc > c > norm_c"));
  EXPECT_THAT(message, testing::Not(HasSubstr("metric")));
}

TEST(Autodiff, AnOpWithoutGradientBesideTheLossIsFine) {
  Builder b("metric");
  const ValueId w = b.parameter("w", {2, 3});
  b.add_output(b.correct_count(w, b.input("labels", {2}, DType::kI32), "correct"));
  b.set_loss(b.reduce_sum(w));
  EXPECT_EQ(nodes_of(trained(b).graph, kSgd).size(), 1U);
}

// The statistics of a batch norm serve its backward op; a loss on them would get no gradient.
TEST(Autodiff, RefusesALossOnValuesSavedForTheBackwardOp) {
  Builder b("saved");
  const auto norm =
      b.append(kBatchNorm, {b.parameter("w", {4, 3}), b.parameter("g", {3}), b.parameter("b", {3})},
               NormAttributes{}, "norm");
  b.set_loss(b.reduce_sum(norm[1]));
  EXPECT_THAT(message_of([&] { trained(b); }), HasSubstr("output 'norm.mean'"));
}

TEST(Autodiff, RefusesALossThatIsNone) {
  Builder none("none");
  EXPECT_THAT(message_of([&] { trained(none); }), HasSubstr("no loss"));
  Builder parameter("parameter");
  parameter.set_loss(parameter.parameter("w", {}));
  EXPECT_THAT(message_of([&] { trained(parameter); }), HasSubstr("'w'"));
}

TEST(Autodiff, RefusesOptimizersOutOfRange) {
  const auto message = [](const Optimizer& optimizer) {
    Builder b("one_weight");
    b.set_loss(b.reduce_sum(b.parameter("w", {2})));
    return message_of([&] { trained(b, {.optimizer = optimizer}); });
  };
  EXPECT_THAT(message(SgdAttributes{.momentum = 1.0}), HasSubstr("momentum 1"));
  EXPECT_THAT(message(SgdAttributes{.nesterov = true}), HasSubstr("nesterov"));
  EXPECT_THAT(message(SgdAttributes{.weight_decay = -0.1}), HasSubstr("weight decay -0.1"));
}

}  // namespace
}  // namespace reprise::graph
