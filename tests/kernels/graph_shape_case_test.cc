// Graphs of awkward shapes: inputs without gradients, unused and integer outputs, writes in place
// at a segment's edge, shared and frozen weights.

#include <algorithm>
#include <gmock/gmock.h>

#include "graph/builder.h"
#include "tests/kernels/on_backend.h"

namespace reprise::test {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Phase;

class GraphShapeCase : public OnBackend {};

ValueId loss_of(Builder& b, ValueId y) {
  const ValueId loss = b.reduce_sum(y, {}, false, "loss");
  b.set_loss(loss);
  return loss;
}

bool has_backward_node_of(const Graph& graph, const std::string& forward_node) {
  return std::ranges::any_of(graph.nodes, [&](const graph::Node& node) {
    return node.name.starts_with("grad/" + forward_node + ".");
  });
}

// x = [[1,2],[3,4]]: dW = column sums [4,6], db = 2.
TEST_P(GraphShapeCase, WeightsOfAFirstLayerGetGradientsAndItsInputGetsNone) {
  Builder b("first");
  const ValueId w = b.parameter("w", {1, 2});
  const ValueId bias = b.parameter("b", {1});
  loss_of(b, b.linear(b.input("x", {2, 2}), w, bias, "fc"));
  const Graph graph = with_gradients(b.finish(), {w, bias});
  for (const graph::Value& value : graph.values) {
    const bool dx = value.role == graph::Role::kGradient && value.shape == Shape{2, 2};
    EXPECT_FALSE(dx) << value.name;
  }
  for (const InterpreterOptions& options : run_options()) {
    Interpreter run = prepare(graph, options);
    run.set<float>("x", {1, 2, 3, 4});
    run.set<float>("w", {0.5, -1});
    run.set<float>("b", {0.25});
    run.step();
    EXPECT_EQ(run.get("grad/w"), (std::vector<float>{4, 6}));
    EXPECT_EQ(run.get("grad/b"), (std::vector<float>{2}));
    EXPECT_EQ(run.get("loss"), (std::vector<float>{-3.5}));  // 0.5*4 - 6 + 2*0.25
  }
}

// (2h, h > 0, 3h): only the first is in the loss, and it is fetched too.
TEST_P(GraphShapeCase, UnusedAndIntegerOutputsCostNothingInTheBackwardPart) {
  Builder b("outputs");
  const ValueId h = b.input("h", {2});
  const ValueId first = b.scale(h, 2, "first");
  b.add_output(first);
  b.add_output(b.positive(h, "sign"));
  b.scale(h, 3, "third");
  loss_of(b, first);
  const Graph graph = with_gradients(b.finish(), {h});
  EXPECT_TRUE(has_backward_node_of(graph, "first"));
  EXPECT_FALSE(has_backward_node_of(graph, "sign"));
  EXPECT_FALSE(has_backward_node_of(graph, "third"));
  for (const InterpreterOptions& options : run_options()) {
    Interpreter run = prepare(graph, options);
    run.set<float>("h", {1, -1});
    run.step();
    EXPECT_EQ(run.get("grad/h"), (std::vector<float>{2, 2}));
    EXPECT_EQ(run.get("first"), (std::vector<float>{2, -2}));
    EXPECT_EQ(run.get<std::int32_t>("sign"), (std::vector<std::int32_t>{1, 0}));
  }
}

Graph mlp_3_4_4_2() {
  Builder b("mlp");
  ValueId h = b.input("x", {5, 3});
  const std::int64_t sizes[] = {3, 4, 4, 2};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name = "fc" + std::string(1, static_cast<char>('1' + i));
    const ValueId w = b.parameter(name + ".w", {sizes[i + 1], sizes[i]});
    h = b.tanh(b.linear(h, w, b.parameter(name + ".b", {sizes[i + 1]}), name));
  }
  loss_of(b, h);
  return graph::make_training_graph(b.finish(), {.optimizer = graph::SgdAttributes{}}).graph;
}

TEST_P(GraphShapeCase, EveryParameterOfARecomputedNetworkIsUpdatedAsInThePlainRun) {
  const Graph graph = mlp_3_4_4_2();
  EXPECT_EQ(graph.updates.size(), 6U);  // three weights, three biases
  std::vector<std::vector<float>> plain;
  for (const InterpreterOptions& options : run_options()) {
    Interpreter run = prepare(graph, options);
    std::vector<std::vector<float>> before, after;
    for (const graph::Value& value : graph.values) {
      if (value.producer.valid()) continue;
      std::vector<float> data(static_cast<std::size_t>(graph::element_count(value.shape)));
      for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = 0.1f * static_cast<float>((i * 7) % 11) - 0.4f;
      }
      run.set(value.name, data);
      if (value.role == graph::Role::kParameter) before.push_back(data);
    }
    run.step();
    for (const graph::Value& value : graph.values) {
      if (!value.producer.valid() && value.role == graph::Role::kParameter) {
        after.push_back(run.get(value.name));
      }
    }
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_NE(after[i], before[i]) << i;
    if (plain.empty()) plain = after;
    EXPECT_EQ(after, plain);
  }
}

// loss = sum(relu(x)) + sum(x * x): dx = [0,1] + 2x = [-2,5].
TEST_P(GraphShapeCase, ReluInPlaceLeavesTheXThatOthersStillRead) {
  Builder b("edge");
  const ValueId x = b.input("x", {2});
  const ValueId y = b.relu(x, "y");
  b.add_output(y);
  b.set_loss(b.add(b.reduce_sum(y), b.reduce_sum(b.mul(x, x, "square")), "loss"));
  const Graph graph = with_gradients(b.finish(), {x});
  for (const InterpreterOptions& options : run_options()) {
    Interpreter run = prepare(graph, options);
    run.set<float>("x", {-1, 2});
    run.step();
    EXPECT_EQ(run.get("x"), (std::vector<float>{-1, 2}));
    EXPECT_EQ(run.get("y"), (std::vector<float>{0, 2}));
    EXPECT_EQ(run.get("grad/x"), (std::vector<float>{-2, 5}));
  }
}

// y = relu(view(x + p)), p = 2: x + p = [3,-1,2].
TEST_P(GraphShapeCase, ReluInPlaceOnAViewOfASum) {
  Builder b("view");
  const ValueId x = b.input("x", {3});
  const ValueId p = b.parameter("p", {});
  const ValueId sum = b.add(x, b.broadcast(p, {3}), "sum");
  const ValueId y = b.relu(b.reshape(sum, {3, 1}, "view"), "y");
  b.add_output(y);
  loss_of(b, y);
  const Graph graph = with_gradients(b.finish(), {x, p});
  for (const InterpreterOptions& options : run_options()) {
    Interpreter run = prepare(graph, options);
    run.set<float>("x", {1, -3, 0});
    run.set<float>("p", {2});
    run.step();
    EXPECT_EQ(run.get("y"), (std::vector<float>{3, 0, 2}));
    EXPECT_EQ(run.get("grad/p"), (std::vector<float>{2}));
    EXPECT_EQ(run.get("grad/x"), (std::vector<float>{1, 0, 1}));
  }
}

// y = w (w x) with w = 2, x = 3: y = 12, dy/dw = 2 w x = 12.
TEST_P(GraphShapeCase, AWeightOfTwoSegmentsCountsTwiceAndUpdatesOnce) {
  Builder b("shared");
  const ValueId w = b.parameter("w", {1});
  const ValueId y = b.mul(w, b.mul(w, b.input("x", {1}), "inner"), "outer");
  loss_of(b, y);
  const Graph forward = b.finish();
  const Graph graph =
      graph::make_training_graph(forward, {.optimizer = graph::SgdAttributes{.rate = {.base = 0.1}},
                                           .fetch_gradients = {w}})
          .graph;
  EXPECT_EQ(graph.updates.size(), 1U);
  for (const InterpreterOptions& options : run_options()) {
    Interpreter run = prepare(graph, options);
    run.set<float>("w", {2});
    run.set<float>("x", {3});
    run.step();
    EXPECT_EQ(run.get("loss"), (std::vector<float>{12}));
    EXPECT_EQ(run.get("grad/w"), (std::vector<float>{12}));
    expect_near(run.get("w"), {0.8});  // 2 - 0.1 * 12
  }
}

struct OutputForm {
  std::string name;
  ValueId (Builder::*op)(ValueId, std::string_view);
  std::vector<double> dx;
};

// h = f(x), x = [0,2], upsampled to two rows of four pixels, loss = sum / 2: dx = 2 f'(x). The
// upsampling's backward reads no data, so h is needed by f's backward alone.
TEST_P(GraphShapeCase, BackwardOpsThatReadOutputsFindThemAfterRecomputation) {
  const std::vector<OutputForm> forms{
      {"sigmoid", &Builder::sigmoid, {0.5, 0.2099872}},  // 2 h (1 - h)
      {"tanh", &Builder::tanh, {2.0, 0.1413016}},        // 2 (1 - h^2)
      {"relu", &Builder::relu, {0.0, 2.0}},              // 0 at 0
  };
  for (const OutputForm& form : forms) {
    SCOPED_TRACE(form.name);
    Builder b("output_form");
    const ValueId x = b.input("x", {1, 1, 1, 2});
    const ValueId h = (b.*form.op)(x, "h");
    b.set_loss(b.scale(b.reduce_sum(b.upsample(h, 2)), 0.5, "loss"));
    const Graph graph = with_gradients(b.finish(), {x});
    for (const InterpreterOptions& options : run_options()) {
      Interpreter run = prepare(graph, options);
      run.set<float>("x", {0, 2});
      run.step();
      expect_near(run.get("grad/x"), form.dx);
    }
  }
}

// Ties everywhere, values around 0, kernels chosen once: the interpreter compares the bits of every
// forward value each time it runs again.
TEST_P(GraphShapeCase, ConvolutionNormPoolReluHaveTheSameBitsWhenTheyRunAgain) {
  Builder b("ties");
  const ValueId x = b.input("x", {2, 8, 17, 17});
  ValueId h = b.conv2d(x, b.parameter("w", {8, 8, 3, 3}), {.padding = {1, 1}}, "conv");
  h = b.batch_norm(h, b.parameter("gamma", {8}), b.parameter("beta", {8}),
                   b.state("running_mean", {8}), b.state("running_var", {8}), 0.1, {}, "bn");
  h = b.relu(b.max_pool(h, {.kernel = {2, 2}, .stride = {2, 2}}, "pool"), "relu");
  loss_of(b, h);
  const Graph graph = graph::make_training_graph(b.finish(), {}).graph;
  Interpreter run = prepare(graph, {.inplace = true, .recompute = true});
  std::vector<float> image(2 * 8 * 17 * 17);
  for (std::size_t i = 0; i < image.size(); ++i) {
    image[i] = static_cast<float>(i % 3) * 1e-7f - 1e-7f;
  }
  run.set("x", image);
  run.set("w", std::vector<float>(8 * 8 * 9, 0.125f));
  run.set("gamma", std::vector<float>(8, 1));
  run.set("beta", std::vector<float>(8, 0));
  run.set("running_mean", std::vector<float>(8, 0));
  run.set("running_var", std::vector<float>(8, 1));
  EXPECT_NO_THROW(run.step());
}

// Two heads, one of them not in the loss; with momentum and weight decay.
TEST_P(GraphShapeCase, AParameterWithoutPartInTheLossStaysAndIsNamed) {
  Builder b("heads");
  const ValueId x = b.input("x", {2, 3});
  loss_of(b, b.linear(x, b.parameter("used", {1, 3}), "head1"));
  b.linear(x, b.parameter("unused", {1, 3}), "head2");
  const auto training = graph::make_training_graph(
      b.finish(), {.optimizer = graph::SgdAttributes{.momentum = 0.9, .weight_decay = 0.1}});
  ASSERT_EQ(training.warnings.size(), 1U);
  EXPECT_THAT(training.warnings[0], testing::HasSubstr("'unused'"));
  Interpreter run = prepare(training.graph);
  run.set<float>("x", {1, 2, 3, 4, 5, 6});
  run.set<float>("used", {1, 1, 1});
  run.set<float>("unused", {1, -2, 3});
  run.set<float>("used.momentum", {0, 0, 0});
  for (std::uint64_t step = 0; step < 3; ++step) run.step({.seed = 0, .step = step});
  EXPECT_EQ(run.get("unused"), (std::vector<float>{1, -2, 3}));
  EXPECT_NE(run.get("used"), (std::vector<float>{1, 1, 1}));
}

// x -> A -> F -> B. Returns the forward graph.
Graph three_layers(bool train_a, bool train_f, bool train_b) {
  Builder b("frozen");
  ValueId h = b.input("x", {2, 3});
  h = b.tanh(b.linear(h, b.parameter("a", {4, 3}, train_a), "A"));
  h = b.tanh(b.linear(h, b.parameter("f", {4, 4}, train_f), "F"));
  h = b.linear(h, b.parameter("b", {2, 4}, train_b), "B");
  loss_of(b, h);
  return b.finish();
}

std::vector<std::vector<float>> after_one_step(Interpreter run) {
  for (const char* name : {"x", "a", "f", "b"}) {
    std::vector<float> data(static_cast<std::size_t>(
        graph::element_count(run.prepared().graph.values[run.id(name)].shape)));
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = 0.2f * static_cast<float>((i * 5) % 7) - 0.5f;
    }
    run.set(name, data);
  }
  run.step();
  return {run.get("a"), run.get("f"), run.get("b")};
}

TEST_P(GraphShapeCase, AFrozenLayerPassesGradientsOnAndHasNone) {
  const Graph frozen = graph::make_training_graph(three_layers(true, false, true), {}).graph;
  for (const graph::Value& value : frozen.values) {
    const bool df = value.role == graph::Role::kGradient && value.shape == Shape{4, 4};
    EXPECT_FALSE(df) << value.name;
  }
  EXPECT_EQ(frozen.updates.size(), 2U);
  const Graph trained = graph::make_training_graph(three_layers(true, true, true), {}).graph;
  const auto expected = after_one_step(prepare(trained));
  for (const InterpreterOptions& options : run_options()) {
    const auto got = after_one_step(prepare(frozen, options));
    EXPECT_EQ(got[0], expected[0]);
    EXPECT_NE(got[1], expected[1]);
    EXPECT_EQ(got[2], expected[2]);
  }
}

TEST_P(GraphShapeCase, WithEverythingFrozenThereIsNoBackwardPart) {
  const Graph graph = graph::make_training_graph(three_layers(false, false, false), {}).graph;
  for (const graph::Node& node : graph.nodes) EXPECT_EQ(node.phase, Phase::kForward) << node.name;
  EXPECT_TRUE(graph.updates.empty());
  const auto after = after_one_step(prepare(graph));
  EXPECT_EQ(after[0][0], -0.5f);
}

REPRISE_ON_EVERY_BACKEND(GraphShapeCase);

}  // namespace
}  // namespace reprise::test
