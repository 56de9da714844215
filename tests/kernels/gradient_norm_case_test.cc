// Clipping by the norm of all gradients, and steps that such a norm skips.

#include <cmath>
#include <limits>

#include "graph/builder.h"
#include "tests/kernels/on_backend.h"

namespace reprise::test {
namespace {

using graph::Builder;
using graph::Graph;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class GradientNormCase : public OnBackend {};

// loss = v g + u . h, so the gradients of v and u are the inputs g and h.
Graph two_weights(const graph::Optimizer& optimizer) {
  Builder b("two");
  const auto v = b.reduce_sum(b.mul(b.parameter("v", {1}), b.input("g", {1})));
  const auto u = b.reduce_sum(b.mul(b.parameter("u", {2}), b.input("h", {2})));
  b.set_loss(b.add(v, u, "loss"));
  return graph::make_training_graph(b.finish(), {.optimizer = optimizer}).graph;
}

void start(Interpreter& run) {
  for (const graph::Value& value : run.prepared().graph.values) {
    const auto count = static_cast<std::size_t>(graph::element_count(value.shape));
    if (value.role == graph::Role::kOptimizerState)
      run.set<float>(value.name, std::vector<float>(count, 0.25F));
  }
  run.set<float>("v", {1});
  run.set<float>("u", {1, 1});
}

void step(Interpreter& run, std::uint64_t number, float g, const std::vector<float>& h) {
  run.set<float>("g", {g});
  run.set<float>("h", h);
  run.step({.seed = 0, .step = number});
}

std::vector<std::vector<float>> state(const Interpreter& run) {
  std::vector<std::vector<float>> all;
  for (const graph::Value& value : run.prepared().graph.values) {
    if (!value.producer.valid() && graph::is_persistent(value.role))
      all.push_back(run.get(value.name));
  }
  return all;
}

// Gradients 3 and (0, 4) have norm 5; clipped to 2.5 they are halved: 1.5 and (0, 2), times the
// rate of 0.1. The 1e-6 beside the norm is below the tolerance.
TEST_P(GradientNormCase, AllGradientsAreScaledByTheirCommonNorm) {
  Interpreter run =
      prepare(two_weights(graph::SgdAttributes{.rate = {.base = 0.1}, .clip_norm = 2.5}));
  start(run);
  step(run, 0, 3, {0, 4});
  expect_near(run.get("grad_norm"), {5});
  expect_near(run.get("v"), {1 - 0.15});
  expect_near(run.get("u"), {1, 1 - 0.2});
}

// Weight decay is no gradient: 1 - 0.1 (1.5 + 0.5 * 1), and 1 - 0.1 (0 + 0.5), 1 - 0.1 (2 + 0.5).
TEST_P(GradientNormCase, WeightDecayIsNotScaled) {
  Interpreter run = prepare(two_weights(
      graph::SgdAttributes{.rate = {.base = 0.1}, .weight_decay = 0.5, .clip_norm = 2.5}));
  start(run);
  step(run, 0, 3, {0, 4});
  expect_near(run.get("v"), {0.8});
  expect_near(run.get("u"), {0.95, 0.75});
}

// Momentum 0.9 of 0.25, then the halved gradients: 0.225 + 1.5 and 0.225 + (0, 2).
TEST_P(GradientNormCase, MomentumSeesTheScaledGradient) {
  Interpreter run = prepare(
      two_weights(graph::SgdAttributes{.rate = {.base = 0.1}, .momentum = 0.9, .clip_norm = 2.5}));
  start(run);
  step(run, 0, 3, {0, 4});
  expect_near(run.get("v.momentum"), {1.725});
  expect_near(run.get("u.momentum"), {0.225, 2.225});
}

// m = 0.9 * 0.25 + 0.1 g, v = 0.999 * 0.25 + 0.001 g^2 with g = 1.5.
TEST_P(GradientNormCase, AdamSeesTheScaledGradient) {
  Interpreter run =
      prepare(two_weights(graph::AdamAttributes{.rate = {.base = 0.1}, .clip_norm = 2.5}));
  start(run);
  step(run, 0, 3, {0, 4});
  expect_near(run.get("v.m"), {0.375});
  expect_near(run.get("v.v"), {0.252});
}

TEST_P(GradientNormCase, ANormBelowTheLimitChangesNoBit) {
  const auto compare = [&](auto attributes) {
    Interpreter plain = prepare(two_weights(attributes));
    attributes.clip_norm = 5.5;
    attributes.skip_nonfinite = true;
    Interpreter guarded = prepare(two_weights(attributes));
    for (Interpreter* run : {&plain, &guarded}) {
      start(*run);
      step(*run, 0, 3, {0, 4});
      step(*run, 1, -1.7F, {0.3F, 0.1F});
    }
    EXPECT_EQ(state(guarded), state(plain));
  };
  compare(graph::SgdAttributes{.rate = {.base = 0.1}, .weight_decay = 0.1});
  compare(graph::SgdAttributes{.rate = {.base = 0.1}, .momentum = 0.9, .nesterov = true});
  compare(graph::AdamAttributes{.rate = {.base = 0.1}, .weight_decay = 0.1, .decoupled = true});
}

TEST_P(GradientNormCase, ANormThatIsNotFiniteLeavesAllAsItWas) {
  const graph::Optimizer optimizers[] = {
      graph::SgdAttributes{.rate = {.base = 0.1}, .weight_decay = 0.1, .skip_nonfinite = true},
      graph::SgdAttributes{.rate = {.base = 0.1}, .momentum = 0.9, .skip_nonfinite = true},
      graph::AdamAttributes{.rate = {.base = 0.1}, .clip_norm = 1, .skip_nonfinite = true}};
  for (const graph::Optimizer& optimizer : optimizers) {
    Interpreter run = prepare(two_weights(optimizer));
    start(run);
    const auto before = state(run);
    for (const float odd : {kNaN, kInfinity, -kInfinity}) {
      step(run, 0, 1, {odd, 1});
      EXPECT_FALSE(std::isfinite(run.get("grad_norm")[0]));
      EXPECT_EQ(state(run), before) << odd;
    }
    step(run, 3, 1, {1, 1});
    EXPECT_NE(state(run), before);
  }
}

// x [4,1] = 0 1 2 3 has mean 1.5 and sample variance 5/3: the running ones go from 0 and 1 to 0.15
// and 0.9 + 1/6. A carried sum of x goes from 7 to 6. A NaN stops all of it.
TEST_P(GradientNormCase, RunningStatisticsAndCarriedStateAreSkippedToo) {
  Builder b("norm");
  const auto x = b.input("x", {4, 1});
  const auto y = b.batch_norm(x, b.parameter("gamma", {1}), b.parameter("beta", {1}),
                              b.state("mean", {1}), b.state("var", {1}), 0.1, {}, "bn");
  b.assign(b.state("carried", {}), b.reduce_sum(x, {}, false, "sum"));
  b.set_loss(b.reduce_sum(b.mul(y, b.input("weights", {4, 1})), {}, false, "loss"));
  const Graph graph = graph::make_training_graph(
                          b.finish(), {.optimizer = graph::SgdAttributes{.skip_nonfinite = true}})
                          .graph;
  for (const InterpreterOptions& options : run_options()) {
    Interpreter run = prepare(graph, options);
    run.set<float>("gamma", {1});
    run.set<float>("beta", {0});
    run.set<float>("mean", {0});
    run.set<float>("var", {1});
    run.set<float>("carried", {7});
    run.set<float>("weights", {1, -1, 2, 0.5});
    run.set<float>("x", {0, kNaN, 2, 3});
    const auto before = state(run);
    run.step({.seed = 0, .step = 0});
    EXPECT_EQ(state(run), before);
    run.set<float>("x", {0, 1, 2, 3});
    run.step({.seed = 0, .step = 1});
    expect_near(run.get("mean"), {0.15});
    expect_near(run.get("var"), {0.9 + 1.0 / 6.0});
    expect_near(run.get("carried"), {6});
  }
}

// From 0 and 1 at a rate of 0.5, population variances: (2, 3) gives 1 and 2, then (5, 4) gives 3
// and 3. The other way round it would be 2.25 and 2.75.
TEST_P(GradientNormCase, StatisticsOfSeveralBatchesAreTakenUpInTheirOrder) {
  Builder b("batches");
  const auto mean = b.state("mean", {1});
  const auto var = b.state("var", {1});
  std::vector<ValueId> inputs{mean, var};
  for (const char* name : {"mean1", "var1", "mean2", "var2"}) inputs.push_back(b.input(name, {1}));
  const auto next =
      b.append(graph::OpKind::kBatchNormUpdate, inputs,
               graph::RunningUpdateAttributes{.rate = 0.5, .count = 2, .unbiased = false}, "update",
               graph::Phase::kUpdate);
  b.add_update(mean, next[0]);
  b.add_update(var, next[1]);
  Interpreter run = prepare(b.finish());
  run.set<float>("mean", {0});
  run.set<float>("var", {1});
  run.set<float>("mean1", {2});
  run.set<float>("var1", {3});
  run.set<float>("mean2", {5});
  run.set<float>("var2", {4});
  run.step();
  expect_near(run.get("mean"), {3});
  expect_near(run.get("var"), {3});
}

REPRISE_ON_EVERY_BACKEND(GradientNormCase);

// 40,000 and 3 elements: sums of squares in 9 parts and in one, whatever the number of threads.
TEST(CpuGradientNorm, BitsDoNotDependOnThreads) {
  if (!backend_is_built("cpu")) GTEST_SKIP() << "this build has no backend cpu";
  Builder b("norm");
  const auto x = b.input("x", {40000});
  const auto y = b.input("y", {3});
  b.add_output(b.append(graph::OpKind::kGlobalNorm, {x, y}, graph::NoAttributes{}, "norm")[0]);
  const Graph graph = b.finish();
  std::vector<float> values(40000);
  double squares = 1 + 4 + 9;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i)) * 100.0F;
    squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  std::vector<float> norms;
  for (const int threads : {1, 2, 3}) {
    Interpreter run(kernels::make_cpu_backend({.threads = threads})->prepare(graph));
    run.set<float>("x", values);
    run.set<float>("y", {1, 2, 3});
    run.step();
    norms.push_back(run.get("norm")[0]);
  }
  EXPECT_NEAR(norms[0], std::sqrt(squares), 1e-6 * std::sqrt(squares));
  EXPECT_EQ(norms[1], norms[0]);
  EXPECT_EQ(norms[2], norms[0]);
}

}  // namespace
}  // namespace reprise::test
