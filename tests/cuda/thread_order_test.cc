// Every op case in every order of threads, with kernels held to what they declare: the same bits.

#include <gtest/gtest.h>
#include <optional>

#include "host/grid.h"
#include "host/touch_guard.h"
#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

using cuda::ThreadOrder;

// Of every fetched value, after one step.
std::vector<std::vector<std::byte>> bits_in(ThreadOrder order, bool guarded, const BuiltCase& built,
                                            const graph::Graph& graph) {
  cuda::set_thread_order(order, 17);
  cuda::set_touch_guard(guarded);
  Interpreter interpreter(prepare_on("cuda", graph));
  fill_sources(built, 4, interpreter);
  interpreter.step({.seed = 3, .step = 1});
  std::vector<std::vector<std::byte>> bits;
  for (const graph::ValueId output : graph.outputs) {
    const auto stored = interpreter.stored(graph.values[output].name);
    bits.emplace_back(stored.begin(), stored.end());
  }
  cuda::set_touch_guard(false);
  cuda::set_thread_order(ThreadOrder::kForward);
  return bits;
}

void expect_same_bits(const OpCase& op_case, const BuiltCase& built) {
  const graph::Graph graph = training_graph(op_case, built);
  const auto forward = bits_in(ThreadOrder::kForward, false, built, graph);
  EXPECT_FALSE(forward.empty());
  EXPECT_EQ(forward, bits_in(ThreadOrder::kReverse, true, built, graph));
  EXPECT_EQ(forward, bits_in(ThreadOrder::kRandom, true, built, graph));
}

TEST(ThreadOrderTest, OpCasesGiveTheSameBitsInEveryOrderAndTouchOnlyWhatTheyDeclare) {
  std::vector<OpCase> cases = op_cases();
  cases.insert(cases.end(), update_cases().begin(), update_cases().end());
  cases.insert(cases.end(), network_cases().begin(), network_cases().end());
  for (const OpCase& one : cases) {
    SCOPED_TRACE(one.name);
    expect_same_bits(one, build(one));
  }
}

TEST(ThreadOrderTest, SoDoTheirFormsInBF16) {
  std::vector<OpCase> cases = op_cases();
  cases.insert(cases.end(), network_cases().begin(), network_cases().end());
  int compared = 0;
  for (const OpCase& one : cases) {
    SCOPED_TRACE(one.name);
    const std::optional<BuiltCase> mixed = in_bf16(build(one));
    if (!mixed) continue;
    expect_same_bits(one, *mixed);
    ++compared;
  }
  EXPECT_GT(compared, 90);
}

}  // namespace
}  // namespace reprise::test
