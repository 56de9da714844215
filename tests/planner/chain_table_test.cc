// The parts of the chain table: envelopes against brute force, the floor against the exact table,
// and threads, on which nothing depends.

#include "gtest/gtest.h"

#include "chain_cases.h"
#include "planner/chain/envelope.h"
#include "planner/chain/floor.h"
#include "planner/chain/simulate.h"
#include "planner/chain/table.h"

namespace reprise::planner {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

Staircase random_stairs(std::int32_t most_steps, std::int32_t memory, Random& random) {
  Staircase stairs;
  Bytes at = random.below(memory);
  std::int64_t cost = 100'000'000;
  for (std::int32_t k = 1 + random.below(most_steps); k > 0; --k) {
    stairs.push_back({at, cost, {}});
    at += 1 + random.below(memory);
    cost -= 1 + random.below(1'000);
  }
  return stairs;
}

std::int64_t cost_at(const Staircase& stairs, Bytes memory) {
  const StairStep* step = step_within(stairs, memory);
  return step == nullptr ? kNever : step->cost;
}

// Sums of two staircases, of which the envelope keeps the cheapest at each byte.
TEST(Envelope, IsTheCheapestCandidateAtEachByte) {
  Random random(31);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Bytes cap = 200 + random.below(600);
    const MemoryCells cells(cap, 1 << random.below(8));
    Envelope envelope(cap, cells);
    std::vector<std::int64_t> cheapest(static_cast<std::size_t>(cap) + 1, kNever);
    for (std::int32_t candidate = 1 + random.below(12); candidate > 0; --candidate) {
      const std::int32_t stretch = 1 << random.below(6);
      const CellStaircase a(random_stairs(40, stretch, random), cells);
      const CellStaircase b(random_stairs(40, stretch, random), cells);
      const Bytes a_bytes = random.below(50), b_bytes = random.below(50), least = random.below(200);
      const std::int64_t cost = random.below(5'000);
      envelope.add({a, a_bytes}, {b, b_bytes}, least, cost, {});
      for (Bytes m = least; m <= cap; ++m) {
        const std::int64_t first = cost_at(a.steps, m - a_bytes);
        const std::int64_t second = cost_at(b.steps, m - b_bytes);
        if (first == kNever || second == kNever) continue;
        std::int64_t& best = cheapest[static_cast<std::size_t>(m)];
        best = std::min(best, first + second + cost);
      }
    }
    for (Bytes m = 0; m <= cap; ++m) {
      ASSERT_EQ(cost_at(envelope.stairs(), m), cheapest[static_cast<std::size_t>(m)]) << m;
    }
    for (std::size_t k = 1; k < envelope.stairs().size(); ++k) {
      EXPECT_LT(envelope.stairs()[k - 1].memory, envelope.stairs()[k].memory);
      EXPECT_GT(envelope.stairs()[k - 1].cost, envelope.stairs()[k].cost);
    }
  }
}

TEST(ChainFloor, IsTheSmallestBudgetOfTheExactTable) {
  Random random(32);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const ChainProblem problem = chains::random_chain(random.below(25), 3, random);
    const ChainFloor floor(problem);
    EXPECT_EQ(floor.budget(), ChainTable(problem, {}).answers().front().memory);
    const ChainReplay replayed = replay(problem, floor.plan());
    ASSERT_FALSE(replayed.fault) << replayed.fault->message;
    EXPECT_EQ(replayed.peak, floor.budget());
  }
}

TEST(ChainFloor, KnownChainsNeedWhatIsKnown) {
  const nlohmann::json known = chains::known().at("chains");
  for (const auto& c : known) {
    const ChainProblem problem = chains::read(c.at("chain"));
    EXPECT_EQ(ChainFloor(problem).budget(), c.at("min_memory")) << c.at("id");
  }
}

// At 230 stages the table has a window; its floor is the exact one all the same.
TEST(ChainFloor, LongChainsArePlannedAtTheirFloorToTheByte) {
  Random random(33);
  const ChainProblem problem = chains::random_chain(230, 1, random);
  ChainOptions options;
  options.drop_inputs = false;
  const ChainSolver solver(problem, options);
  const Bytes floor = ChainFloor(problem).budget();
  EXPECT_EQ(std::get<ChainInfeasible>(solver.plan(floor - 1)).floor, floor);
  const ChainOutcome outcome = solver.plan(floor);
  const auto& plan = std::get<ChainPlan>(outcome);
  EXPECT_EQ(plan.peak, floor);
  EXPECT_EQ(plan.floor, floor);
}

TEST(ChainTable, DoesNotDependOnTheNumberOfThreads) {
  Random random(34);
  for (const bool drop_inputs : {false, true}) {
    const ChainProblem problem = chains::random_chain(45, 2, random);
    ChainTableOptions options;
    options.drop_inputs = drop_inputs;
    options.window = 20;
    options.grid = 4;
    options.most_steps = 30;
    const ChainTable one(problem, options);
    for (const int threads : {2, 3, 7}) {
      options.threads = threads;
      const ChainTable many(problem, options);
      ASSERT_EQ(many.answers().size(), one.answers().size());
      for (std::size_t k = 0; k < one.answers().size(); ++k) {
        EXPECT_EQ(many.answers()[k].memory, one.answers()[k].memory);
        EXPECT_EQ(many.answers()[k].cost, one.answers()[k].cost);
        EXPECT_EQ(many.plan(one.answers()[k].memory), one.plan(one.answers()[k].memory));
      }
    }
  }
}

}  // namespace
}  // namespace reprise::planner
