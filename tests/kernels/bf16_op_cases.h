#pragma once

// All op cases and small networks with their numbers in bf16, where ops have such a form: each
// tested backend against the reference, and against itself in place and with every forward node
// recomputed. Included by one file of a test program.

#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>
#include <tuple>

#include "tests/kernels/agreement.h"
#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

constexpr std::uint64_t kBF16Seed = 12;

// One in the last place of bf16 is up to 2^-7 of a number. The reference rounds the exact result, a
// backend one that has the error of f32 sums: near the middle of two bf16 numbers they go to
// different ones.
constexpr double kLastPlace = 1.0 / 128;

std::vector<OpCase> bf16_cases() {
  std::vector<OpCase> all = op_cases();
  all.insert(all.end(), network_cases().begin(), network_cases().end());
  std::erase_if(all, [](const OpCase& c) { return !in_bf16(build(c)); });
  return all;
}

inline std::vector<std::string> bf16_backends() {
  std::vector<std::string> names = tested_backends();
  std::erase(names, "reference");
  return names;
}

class BF16OpCase : public testing::TestWithParam<std::tuple<std::string, OpCase>> {
 protected:
  BF16OpCase() : built_(*in_bf16(build(op_case()))), graph_(training_graph(op_case(), built_)) {}

  void SetUp() override {
    if (!backend_is_built(backend())) GTEST_SKIP() << "this build has no backend " << backend();
  }

  static const std::string& backend() { return std::get<0>(GetParam()); }
  static const OpCase& op_case() { return std::get<1>(GetParam()); }
  // A case is one op behind casts, or two roundings where a library rounds before a bias is added;
  // a network is several ops, and a recurrent layer has four gates, whose gradients are rounded and
  // may cancel out where they meet.
  static double tolerance() {
    const std::string& name = op_case().name;
    if (name.starts_with("lstm/") || name.starts_with("gru/")) return 8 * kLastPlace;
    return name.starts_with("network/") ? 4 * kLastPlace : 2 * kLastPlace;
  }

  // The gradients of a recurrent layer are sums over its gates of rounded factors, which may cancel
  // out: they count against the largest number of the case. Elsewhere 0: against their own.
  double scale(const Interpreter& truth) const {
    const bool recurrent =
        std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [](const graph::Node& node) {
          return node.op == graph::OpKind::kLstmGrad || node.op == graph::OpKind::kGruGrad;
        });
    double largest = 0;
    for (const std::string& name : outputs())
      if (recurrent) largest = std::max(largest, kernels::largest_of(truth.get(name)));
    return largest;
  }

  std::unique_ptr<Interpreter> stepped(std::string_view backend,
                                       const InterpreterOptions& options = {}) {
    auto interpreter = std::make_unique<Interpreter>(prepare_on(backend, graph_), options);
    fill_sources(built_, kBF16Seed, *interpreter);
    interpreter->step({.seed = 3, .step = 1});
    return interpreter;
  }

  // All that is fetched but the loss: a weighted sum of the rest, in which one number on the other
  // side of a middle weighs more the more the others cancel out.
  std::vector<std::string> outputs() const {
    std::vector<std::string> names;
    for (const graph::ValueId output : graph_.outputs) {
      if (output != graph_.loss) names.push_back(graph_.values[output].name);
    }
    return names;
  }

  BuiltCase built_;
  graph::Graph graph_;
};

TEST_P(BF16OpCase, AgreesWithTheReferenceToTheLastPlace) {
  const auto truth = stepped("reference");
  const auto tested = stepped(backend());
  for (const std::string& name : outputs()) {
    if (truth->prepared().graph.values[truth->id(name)].dtype != graph::DType::kF32) {
      EXPECT_EQ(tested->get<std::int32_t>(name), truth->get<std::int32_t>(name)) << name;
      continue;
    }
    EXPECT_LE(kernels::relative_difference(tested->get(name), truth->get(name), scale(*truth)),
              tolerance())
        << name;
  }
}

TEST_P(BF16OpCase, InPlaceAndRecomputedRunsGiveTheSameBits) {
  const auto bytes = [](Interpreter& interpreter, const std::string& name) {
    const auto stored = interpreter.stored(name);
    return std::vector<std::byte>(stored.begin(), stored.end());
  };
  const auto plain = stepped(backend());
  const auto inplace = stepped(backend(), {.inplace = true});
  const auto recomputed = stepped(backend(), {.recompute = true});
  for (const std::string& name : outputs()) {
    EXPECT_EQ(bytes(*plain, name), bytes(*inplace, name)) << name;
    EXPECT_EQ(bytes(*plain, name), bytes(*recomputed, name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BF16OpCase,
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
