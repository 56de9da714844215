// bf16 forms on the reference backend: near what f32 gives, and rounded.

#include "graph/bf16.h"

#include <cmath>
#include <gtest/gtest.h>

#include "tests/kernels/agreement.h"
#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

constexpr std::uint64_t kSeed = 11;

// A result has passed up to a few roundings of 2^-9 each, and sums of rounded terms.
TEST(Bf16Forms, OfEveryOpCaseStayNearF32OnTheReference) {
  int compared = 0;
  for (const OpCase& op_case : op_cases()) {
    const BuiltCase built = build(op_case);
    const auto mixed = in_bf16(built);
    if (!mixed) continue;
    ++compared;
    Interpreter exact(prepare_on("reference", training_graph(op_case, built)));
    Interpreter rounded(prepare_on("reference", training_graph(op_case, *mixed)));
    fill_sources(built, kSeed, exact);
    fill_sources(*mixed, kSeed, rounded);
    exact.step();
    rounded.step();
    for (const ValueId id : built.differentiable) {
      const std::string name = "grad/" + built.graph.values[id].name;
      EXPECT_LE(kernels::relative_difference(rounded.get(name), exact.get(name)), 0.05)
          << op_case.name << " " << name;
    }
  }
  EXPECT_GT(compared, 60);
}

TEST(Bf16Forms, OfTheReferenceHoldNumbersOf16Bits) {
  graph::Builder b("rounded");
  const ValueId x = b.cast(b.input("x", {3}), graph::DType::kBF16, "x16");
  b.add_output(b.add(x, x, "twice"));
  b.add_output(b.cast(x, graph::DType::kF32, "back"));
  Interpreter on(prepare_on("reference", b.finish()));
  on.set<float>("x", {1.0f + 0x1p-8f, 3e38f, -0.3f});  // a tie, one that doubles past the largest
  on.step();
  // -0.3 = -1.2 * 2^-2 lies between -1.1953125 * 2^-2 and -1.203125 * 2^-2, nearer to the second.
  const float large = graph::from_bf16(graph::to_bf16(3e38f));
  EXPECT_EQ(on.get("back"), (std::vector<float>{1.0f, large, -0.30078125f}));
  EXPECT_EQ(on.get<std::uint16_t>("twice"),
            (std::vector<std::uint16_t>{0x4000, 0x7F80, graph::to_bf16(-0.6015625f)}));
}

}  // namespace
}  // namespace reprise::test
