// Optimizer steps by hand, and over a save and load of everything persistent after step 2.

#include <algorithm>
#include <functional>

#include "graph/builder.h"
#include "tests/kernels/on_backend.h"

namespace reprise::test {
namespace {

using graph::Builder;
using graph::Graph;

constexpr double kTolerance = 1e-6;

class OptimizerCase : public OnBackend {};

// loss = w g, so the gradient of w is the input g.
Graph one_weight(const graph::Optimizer& optimizer) {
  Builder b("one");
  b.set_loss(b.reduce_sum(b.mul(b.parameter("w", {1}), b.input("g", {1})), {}, false, "loss"));
  return graph::make_training_graph(b.finish(), {.optimizer = optimizer}).graph;
}

void start(Interpreter& run, float w) {
  for (const graph::Value& value : run.prepared().graph.values) {
    if (value.role == graph::Role::kOptimizerState) run.set<float>(value.name, {0});
  }
  run.set<float>("w", {w});
}

float step(Interpreter& run, std::uint64_t number, float gradient) {
  run.set<float>("g", {gradient});
  run.step({.seed = 0, .step = number});
  return run.get("w")[0];
}

// Every persistent value, bit for bit as the backend stores it.
void copy_persistent(Interpreter& from, Interpreter& to) {
  for (const graph::Value& value : from.prepared().graph.values) {
    if (!value.producer.valid() && graph::is_persistent(value.role)) {
      std::ranges::copy(from.stored(value.name), to.stored(value.name).begin());
    }
  }
}

struct Trajectory {
  std::vector<float> gradients;
  std::vector<double> w;  // after each step, from w = 1
};

void follow(const Trajectory& right, const std::function<Interpreter()>& fresh) {
  Interpreter straight = fresh();
  start(straight, 1);
  Interpreter saved = fresh();
  Interpreter resumed = fresh();
  start(saved, 1);
  for (std::size_t i = 0; i < right.w.size(); ++i) {
    const float w = step(straight, i, right.gradients[i]);
    EXPECT_NEAR(static_cast<double>(w), right.w[i], kTolerance) << "step " << i + 1;
    if (i == 2) copy_persistent(saved, resumed);
    EXPECT_EQ(step(i < 2 ? saved : resumed, i, right.gradients[i]), w) << "step " << i + 1;
  }
}

// v = 1, 1.9, 2.71 at a gradient of 1: w = 1 - 0.1, - 0.19, - 0.271.
TEST_P(OptimizerCase, MomentumGoesOnAfterALoad) {
  const Graph graph = one_weight(graph::SgdAttributes{.rate = {.base = 0.1}, .momentum = 0.9});
  follow({{1, 1, 1}, {0.9, 0.71, 0.439}}, [&] { return prepare(graph); });
}

TEST_P(OptimizerCase, AdamGoesOnAfterALoad) {
  const Graph graph = one_weight(graph::AdamAttributes{.rate = {.base = 0.1}});
  follow({{1, 0.5, 0.25, 0.125}, {0.9, 0.806782, 0.7225119, 0.6475795}},
         [&] { return prepare(graph); });
  // What a load without moments and step counter would give: another path.
  Interpreter lost = prepare(graph);
  start(lost, 0.806782f);
  EXPECT_NEAR(static_cast<double>(step(lost, 0, 0.25f)), 0.706782, kTolerance);
  EXPECT_NEAR(static_cast<double>(step(lost, 1, 0.125f)), 0.6135641, kTolerance);
}

// Nesterov: v = 1, 1.9; step g + 0.9 v = 1.9, 2.71: w = 1 - 0.19 - 0.271.
TEST_P(OptimizerCase, NesterovLooksAhead) {
  const Graph graph =
      one_weight(graph::SgdAttributes{.rate = {.base = 0.1}, .momentum = 0.9, .nesterov = true});
  follow({{1, 1}, {0.81, 0.539}}, [&] { return prepare(graph); });
}

// Coupled decay adds to the gradient, which Adam's first step normalises away (1 - 0.1 * sign);
// decoupled decay takes 0.1 * 0.5 * w besides.
TEST_P(OptimizerCase, WeightDecayIsCoupledOrDecoupled) {
  const Graph sgd = one_weight(graph::SgdAttributes{.rate = {.base = 0.1}, .weight_decay = 0.5});
  follow({{1}, {0.85}}, [&] { return prepare(sgd); });  // 1 - 0.1 (1 + 0.5)
  graph::AdamAttributes adam{.rate = {.base = 0.1}, .weight_decay = 0.5};
  const Graph coupled = one_weight(adam);
  follow({{1}, {0.9}}, [&] { return prepare(coupled); });
  adam.decoupled = true;
  const Graph decoupled = one_weight(adam);
  follow({{1}, {0.85}}, [&] { return prepare(decoupled); });
}

// 0.1 halving each step: 1 - 0.1 - 0.05 - 0.025 - 0.0125.
TEST_P(OptimizerCase, TheRateIsThatOfTheStepAfterALoadToo) {
  const graph::LearningRate halving{
      .kind = graph::LearningRate::Kind::kStep, .base = 0.1, .period_steps = 1, .factor = 0.5};
  const Graph graph = one_weight(graph::SgdAttributes{.rate = halving});
  follow({{1, 1, 1, 1}, {0.9, 0.85, 0.825, 0.8125}}, [&] { return prepare(graph); });
}

REPRISE_ON_EVERY_BACKEND(OptimizerCase);

}  // namespace
}  // namespace reprise::test
