// All op cases, small networks and optimizers: the CPU backend against the reference, and against
// itself in place and with every forward node recomputed.

#include <algorithm>
#include <cctype>
#include <cstring>
#include <gtest/gtest.h>

#include "agreement.h"
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

class CpuOpCase : public testing::TestWithParam<OpCase> {
 protected:
  CpuOpCase() : built_(build(GetParam())), graph_(training_graph(GetParam(), built_)) {}

  void SetUp() override {
    if (!backend_is_built("cpu")) GTEST_SKIP() << "this build has no oneDNN";
  }

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

TEST_P(CpuOpCase, AgreesWithTheReferenceAfterEachOfThreeSteps) {
  const auto truth = fresh("reference");
  const auto cpu = fresh("cpu");
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    truth->step({.seed = 3, .step = step});
    cpu->step({.seed = 3, .step = step});
    for (const std::string& name : readable()) {
      if (!is_float(*truth, name)) {
        EXPECT_EQ(cpu->get<std::int32_t>(name), truth->get<std::int32_t>(name)) << name;
        continue;
      }
      // Later steps start from parameters that differ in their last bits.
      const double tolerance = step == 0 ? 1e-5 : 3e-5;
      EXPECT_LE(kernels::relative_difference(cpu->get(name), truth->get(name)), tolerance)
          << name << " after step " << step;
    }
  }
}

TEST_P(CpuOpCase, InPlaceAndRecomputedRunsGiveTheSameBits) {
  const auto plain = fresh("cpu");
  const auto inplace = fresh("cpu", {.inplace = true});
  const auto recomputed = fresh("cpu", {.recompute = true});
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

INSTANTIATE_TEST_SUITE_P(All, CpuOpCase, testing::ValuesIn(all_cases()), [](const auto& param) {
  std::string name = param.param.name;
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace reprise::test
