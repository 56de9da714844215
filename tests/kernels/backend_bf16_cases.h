#pragma once

// The op cases and small networks with bf16 operands: each tested backend against the reference,
// which rounds the same values, and against itself in place and with every forward node recomputed.
// Included by one file of a test program.

#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>
#include <tuple>

#include "tests/kernels/agreement.h"
#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

constexpr std::uint64_t kBf16Seed = 11;

std::vector<OpCase> bf16_cases() {
  std::vector<OpCase> all = op_cases();
  all.insert(all.end(), network_cases().begin(), network_cases().end());
  std::erase_if(all, [](const OpCase& op_case) { return !in_bf16(build(op_case)); });
  return all;
}

inline std::vector<std::string> bf16_backends() {
  std::vector<std::string> names = tested_backends();
  std::erase(names, "reference");
  return names;
}

class BackendBf16Case : public testing::TestWithParam<std::tuple<std::string, OpCase>> {
 protected:
  BackendBf16Case()
      : built_(*in_bf16(build(op_case()))), graph_(training_graph(op_case(), built_)) {}

  void SetUp() override {
    if (!backend_is_built(backend())) GTEST_SKIP() << "this build has no backend " << backend();
  }

  static const std::string& backend() { return std::get<0>(GetParam()); }
  static const OpCase& op_case() { return std::get<1>(GetParam()); }

  std::unique_ptr<Interpreter> run(std::string_view backend,
                                   const InterpreterOptions& options = {}) {
    auto interpreter = std::make_unique<Interpreter>(prepare_on(backend, graph_), options);
    fill_sources(built_, kBf16Seed, *interpreter);
    interpreter->step({.seed = 3, .step = 0});
    return interpreter;
  }

  // f32 values: persistent ones and what is fetched, so also those that bf16 values were cast to.
  std::vector<std::string> floats() const {
    std::vector<std::string> names;
    for (const graph::Value& value : graph_.values) {
      const bool persists = !value.producer.valid() && graph::is_persistent(value.role);
      if (persists && value.dtype == graph::DType::kF32) names.push_back(value.name);
    }
    for (const graph::ValueId output : graph_.outputs) {
      const graph::Value& value = graph_.values[output];
      if (value.dtype == graph::DType::kF32) names.push_back(value.name);
    }
    return names;
  }

  BuiltCase built_;
  graph::Graph graph_;
};

// Results that f32 and f64 sums round to different sides differ by one unit in the last of 8 bits,
// 2^-8 to 2^-7 of them; their gradients by as much again.
TEST_P(BackendBf16Case, AgreesWithTheReference) {
  const auto truth = run("reference");
  const auto tested = run(backend());
  for (const std::string& name : floats()) {
    EXPECT_LE(kernels::relative_difference(tested->get(name), truth->get(name)), 0x1p-7) << name;
  }
}

TEST_P(BackendBf16Case, InPlaceAndRecomputedRunsGiveTheSameBits) {
  const auto plain = run(backend());
  const auto inplace = run(backend(), {.inplace = true});
  const auto recomputed = run(backend(), {.recompute = true});
  for (const std::string& name : floats()) {
    const auto bytes = [&](Interpreter& interpreter) {
      const auto stored = interpreter.stored(name);
      return std::vector<std::byte>(stored.begin(), stored.end());
    };
    EXPECT_EQ(bytes(*plain), bytes(*inplace)) << name;
    EXPECT_EQ(bytes(*plain), bytes(*recomputed)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BackendBf16Case,
    testing::Combine(testing::ValuesIn(bf16_backends()), testing::ValuesIn(bf16_cases())),
    [](const auto& param) {
      std::string name = std::get<0>(param.param) + "_" + std::get<1>(param.param).name;
      std::replace_if(
          name.begin(), name.end(),
          [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
      return name;
    });

}  // namespace
}  // namespace reprise::test
