#pragma once

// All op cases, small networks and optimizers: each tested backend against the reference, and
// against itself in place and with every forward node recomputed. Included by one file of a test
// program.

#include <algorithm>
#include <cctype>
#include <cstring>
#include <gtest/gtest.h>
#include <tuple>

#include "tests/kernels/agreement.h"
#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

constexpr std::uint64_t kSeed = 11;
constexpr int kSteps = 3;

std::vector<OpCase> all_cases() {
  std::vector<OpCase> all = op_cases();
  all.insert(all.end(), network_cases().begin(), network_cases().end());
  all.insert(all.end(), update_cases().begin(), update_cases().end());
  return all;
}

inline std::vector<std::string> compared_backends() {
  std::vector<std::string> names = tested_backends();
  std::erase(names, "reference");
  return names;
}

class BackendOpCase : public testing::TestWithParam<std::tuple<std::string, OpCase>> {
 protected:
  BackendOpCase() : built_(build(op_case())), graph_(training_graph(op_case(), built_)) {}

  void SetUp() override {
    if (!backend_is_built(backend())) GTEST_SKIP() << "this build has no backend " << backend();
  }

  static const std::string& backend() { return std::get<0>(GetParam()); }
  static const OpCase& op_case() { return std::get<1>(GetParam()); }

  std::unique_ptr<Interpreter> fresh(std::string_view backend,
                                     const InterpreterOptions& options = {}) {
    auto interpreter = std::make_unique<Interpreter>(prepare_on(backend, graph_), options);
    fill_sources(built_, kSeed, *interpreter);
    return interpreter;
  }

  // Every persistent value and every fetched one.
  std::vector<std::string> readable() const {
    std::vector<std::string> names;
    for (const graph::Value& value : graph_.values) {
      if (!value.producer.valid() && graph::is_persistent(value.role)) names.push_back(value.name);
    }
    for (const graph::ValueId output : graph_.outputs) names.push_back(graph_.values[output].name);
    return names;
  }

  bool is_float(const Interpreter& interpreter, const std::string& name) const {
    return interpreter.prepared().graph.values[interpreter.id(name)].dtype == graph::DType::kF32;
  }

  BuiltCase built_;
  graph::Graph graph_;
};

TEST_P(BackendOpCase, AgreesWithTheReferenceAfterEachOfThreeSteps) {
  const auto truth = fresh("reference");
  const auto tested = fresh(backend());
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    truth->step({.seed = 3, .step = step});
    tested->step({.seed = 3, .step = step});
    for (const std::string& name : readable()) {
      if (!is_float(*truth, name)) {
        EXPECT_EQ(tested->get<std::int32_t>(name), truth->get<std::int32_t>(name)) << name;
        continue;
      }
      // Later steps start from parameters that differ in their last bits.
      const double tolerance = step == 0 ? 1e-5 : 3e-5;
      EXPECT_LE(kernels::relative_difference(tested->get(name), truth->get(name)), tolerance)
          << name << " after step " << step;
    }
  }
}

TEST_P(BackendOpCase, InPlaceAndRecomputedRunsGiveTheSameBits) {
  const auto plain = fresh(backend());
  const auto inplace = fresh(backend(), {.inplace = true});
  const auto recomputed = fresh(backend(), {.recompute = true});
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    plain->step({.seed = 3, .step = step});
    inplace->step({.seed = 3, .step = step});
    recomputed->step({.seed = 3, .step = step});
  }
  for (const std::string& name : readable()) {
    const auto bytes = [&](Interpreter& interpreter) {
      const auto stored = interpreter.stored(name);
      return std::vector<std::byte>(stored.begin(), stored.end());
    };
    EXPECT_EQ(bytes(*plain), bytes(*inplace)) << name;
    EXPECT_EQ(bytes(*plain), bytes(*recomputed)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BackendOpCase,
    testing::Combine(testing::ValuesIn(compared_backends()), testing::ValuesIn(all_cases())),
    [](const auto& param) {
      std::string name = std::get<0>(param.param) + "_" + std::get<1>(param.param).name;
      std::replace_if(
          name.begin(), name.end(),
          [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
      return name;
    });

}  // namespace
}  // namespace reprise::test
