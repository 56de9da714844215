#include "planner/live_sequence.h"

#include <random>

#include "gtest/gtest.h"

#include "planner/random.h"
#include "schedule/simulate.h"
#include "tests/planner/plan_checks.h"
#include "tests/planner/random_training.h"
#include "tests/schedule/random_problem.h"

namespace reprise::planner {
namespace {

// Any sequence of additions and removals: validity, peak and cost as a fresh trace says.
using schedule::OpId;

void expect_agrees(const Structure& structure, const LiveSequence& sequence) {
  const schedule::Order order = sequence.order();
  const schedule::TraceResult traced = schedule::trace_order(structure.problem(), order);
  bool once = true;  // the sequence leaves it to its user that ops run as often as they must
  for (Index i = 0; i < structure.ops(); ++i) {
    once = once && (structure.op(i).recomputable || sequence.runs(i).size() == 1);
    for (TensorId t : structure.op(i).outputs) {
      const bool output = structure.problem().tensors[t].kind == schedule::TensorKind::kOutput;
      once = once && (!output || !sequence.runs(i).empty());
    }
  }
  if (!once) return;
  const bool ordered =
      structure.freedom() == OrderFreedom::kFree || is_fixed_order(structure.problem(), order);
  ASSERT_EQ(sequence.valid(), !traced.fault && ordered)
      << (traced.fault ? traced.fault->message : "");
  if (!sequence.valid()) return;
  EXPECT_EQ(sequence.cost(), traced.trace.cost);
  if (!order.empty() && sequence.op_at(0) >= 0) {
    ASSERT_EQ(sequence.peak(), schedule::profile_memory(traced.trace).peak)
        << testing::print(structure.problem()) << ::testing::PrintToString([&] {
             std::vector<std::size_t> ops;
             for (OpId op : order) ops.push_back(op.index());
             return ops;
           }());
  }
}

void change_at_random(const Problem& problem, std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  const OrderFreedom freedom = seed % 2 == 0 ? OrderFreedom::kFixed : OrderFreedom::kFree;
  const Structure structure(problem, freedom);
  LiveSequence sequence(structure, program_order(problem, freedom), 40);
  expect_agrees(structure, sequence);
  Random random(seed);
  for (int change = 0; change < 60; ++change) {
    const Index position = random.below(sequence.end() - 1);
    if (sequence.op_at(position) >= 0) {
      if (random.below(3) > 0) continue;
      const Index op = sequence.op_at(position);
      sequence.remove(position);
      expect_agrees(structure, sequence);
      if (random.below(2) == 0) sequence.add(op, position);
    } else {
      sequence.add(random.below(structure.ops()), position);
    }
    expect_agrees(structure, sequence);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(LiveSequence, AgreesWithTheTraceAfterEveryChange) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    change_at_random(testing::TrainingDrawer(seed).run(1 + static_cast<std::int64_t>(seed % 5)),
                     seed);
    std::mt19937_64 random(seed);
    const Problem problem = schedule::testing::draw_problem(random);
    if (testing::is_sound(problem)) change_at_random(problem, seed);
    if (HasFailure()) return;
  }
}

TEST(LiveSequence, TakesBackToTheSamePeak) {
  const Problem problem = testing::TrainingDrawer(5).run(8);
  const Structure structure(problem);
  LiveSequence sequence(structure, program_order(problem), 100);
  const Bytes peak = sequence.peak();
  const Index place = sequence.free_before(sequence.runs(5)[0]);
  ASSERT_GE(place, 0);
  sequence.add(2, place);
  sequence.remove(place);
  EXPECT_EQ(sequence.peak(), peak);
  EXPECT_TRUE(sequence.valid());
}

}  // namespace
}  // namespace reprise::planner
