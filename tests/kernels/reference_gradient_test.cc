// Gradients against central differences in double precision: for each op case and each small
// network, dloss/dv of the training graph agrees with
//     (8 (L(v + h) - L(v - h)) - (L(v + 2h) - L(v - 2h))) / 12h
// of the forward graph.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

#include "fmt/format.h"

#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

constexpr std::uint64_t kSeed = 11;
constexpr graph::StepContext kContext{.seed = 3, .step = 5};
// Truncation is h^4 L'''''/30, rounding 1e-16 L/h: below 1e-9 for losses up to 1000.
constexpr double kStep = 1e-4;
constexpr double kTolerance = 1e-6;
constexpr std::size_t kElementsPerValue = 24;

std::span<double> doubles(Interpreter& interpreter, const std::string& name) {
  const auto bytes = interpreter.stored(name);
  return {reinterpret_cast<double*>(bytes.data()), bytes.size() / sizeof(double)};
}

class CentralDifferences {
 public:
  explicit CentralDifferences(const BuiltCase& built)
      : loss_name_(built.graph.values[built.graph.loss].name),
        forward_(prepare_on("reference", built.graph)) {
    // Steps would move running statistics and carried states; every run starts from the fills.
    fill_sources(built, kSeed, forward_);
  }

  // d loss / d value . direction
  double along(const std::string& value, const std::vector<double>& direction) {
    const auto rise = [&](double h) {
      return loss_at(value, direction, h) - loss_at(value, direction, -h);
    };
    return (8 * rise(kStep) - rise(2 * kStep)) / (12 * kStep);
  }

 private:
  double loss_at(const std::string& value, const std::vector<double>& direction, double step) {
    const auto data = doubles(forward_, value);
    const std::vector<double> before(data.begin(), data.end());
    for (std::size_t i = 0; i < data.size(); ++i) data[i] += step * direction[i];
    const graph::Graph& graph = forward_.prepared().graph;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) forward_.run(NodeId(n), kContext);
    const double loss = doubles(forward_, loss_name_)[0];
    std::ranges::copy(before, data.begin());
    return loss;
  }

  std::string loss_name_;
  Interpreter forward_;
};

void expect_close(double gradient, double difference, const std::string& what) {
  const double scale = std::max({1e-2, std::abs(gradient), std::abs(difference)});
  EXPECT_LT(std::abs(gradient - difference), kTolerance * scale)
      << what << ": gradient " << gradient << ", central difference " << difference;
}

// Single elements, at most kElementsPerValue of them, and one random direction through all.
void check_value(CentralDifferences& differences, Interpreter& training, const std::string& name) {
  const auto gradient = doubles(training, "grad/" + name);
  std::mt19937_64 random(kSeed);
  std::vector<std::size_t> elements(gradient.size());
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = i;
  std::shuffle(elements.begin(), elements.end(), random);
  if (elements.size() > kElementsPerValue) elements.resize(kElementsPerValue);
  for (const std::size_t i : elements) {
    std::vector<double> direction(gradient.size(), 0.0);
    direction[i] = 1.0;
    expect_close(gradient[i], differences.along(name, direction), name + fmt::format("[{}]", i));
  }
  std::vector<double> direction(gradient.size());
  std::uniform_real_distribution<double> uniform(-1, 1);
  double expected = 0;
  for (std::size_t i = 0; i < direction.size(); ++i) {
    direction[i] = uniform(random) / std::sqrt(static_cast<double>(direction.size()));
    expected += gradient[i] * direction[i];
  }
  expect_close(expected, differences.along(name, direction), name + ", along a random direction");
}

void check_case(const OpCase& op_case, const InterpreterOptions& options) {
  SCOPED_TRACE(op_case.name + fmt::format(", seed {}", kSeed));
  const BuiltCase built = build(op_case);
  Interpreter training(prepare_on("reference", training_graph(op_case, built)), options);
  fill_sources(built, kSeed, training);
  training.step(kContext);
  CentralDifferences differences(built);
  for (const ValueId value : built.differentiable) {
    check_value(differences, training, built.graph.values[value].name);
  }
}

class ReferenceGradient : public testing::TestWithParam<OpCase> {};

TEST_P(ReferenceGradient, AgreesWithCentralDifferences) {
  check_case(GetParam(), {});
}

// The same with every in-place pair that a node allows, and with the forward part run again before
// every backward node; bits must not move.
TEST_P(ReferenceGradient, HasTheSameBitsInPlaceAndRecomputed) {
  const BuiltCase built = build(GetParam());
  const graph::Graph graph = training_graph(GetParam(), built);
  Interpreter plain(prepare_on("reference", graph));
  Interpreter changed(prepare_on("reference", graph), {.inplace = true, .recompute = true});
  for (Interpreter* interpreter : {&plain, &changed}) {
    fill_sources(built, kSeed, *interpreter);
    interpreter->step(kContext);
  }
  for (const ValueId output : graph.outputs) {
    const std::string& name = graph.values[output].name;
    EXPECT_TRUE(std::ranges::equal(plain.stored(name), changed.stored(name))) << name;
  }
}

std::string test_name(const testing::TestParamInfo<OpCase>& info) {
  std::string name = info.param.name;
  std::ranges::replace(name, '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Ops, ReferenceGradient, testing::ValuesIn(op_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(Networks, ReferenceGradient, testing::ValuesIn(network_cases()),
                         test_name);

// A check that cannot fail checks nothing: with the wrong point it must fail.
TEST(ReferenceGradientCheck, SeesAGradientOfAnotherPoint) {
  const OpCase square{"mul/square", [](CaseBuilder& k) {
                        const ValueId a = k.x("a", {1}, given({0.5}));
                        k.out(k->mul(a, a));
                      }};
  const BuiltCase built = build(square);
  CentralDifferences differences(built);
  Interpreter training(prepare_on("reference", training_graph(square, built)));
  fill_sources(built, kSeed, training);
  const double right = differences.along("a", {1.0});
  training.step(kContext);
  EXPECT_NEAR(doubles(training, "grad/a")[0], right, 1e-8);
  doubles(training, "a")[0] = 0.75;
  training.step(kContext);
  EXPECT_GT(std::abs(doubles(training, "grad/a")[0] - right), 0.1);
}

}  // namespace
}  // namespace reprise::test
