// Uniform chains: against known answers, the general table, and the bound.

#include <cmath>

#include "gtest/gtest.h"

#include "base/error.h"
#include "chain_cases.h"
#include "planner/chain/revolve_counts.h"
#include "planner/chain/simulate.h"
#include "planner/chain/table.h"
#include "planner/chain/uniform.h"

namespace reprise::planner {
namespace {

UniformChain read(const nlohmann::json& u) {
  return {u.at("steps"), u.at("a"),  u.at("b"),  u.at("g"),  u.at("uf"),
          u.at("ub"),    u.at("of"), u.at("ob"), u.at("ul"), u.at("ol")};
}

// An LSTM-like chain: a state of one unit, a record of four, backward twice as dear.
UniformChain lstm_like(std::int64_t steps) {
  return {steps, 1, 4, 1, 1, 2, 0, 0, 0, 0};
}

TEST(KnownUniformChains, AreSolvedExactly) {
  const nlohmann::json known = chains::known().at("uniform");
  for (const auto& u : known) {
    const UniformChain chain = read(u);
    for (const auto& k : u.at("cases")) {
      SCOPED_TRACE(std::to_string(chain.steps) + " steps within " + k.at(0).dump());
      const ChainOutcome outcome = solve_chain(chain, k.at(0).get<Bytes>());
      const auto& plan = std::get<ChainPlan>(outcome);
      EXPECT_EQ(plan.cost, k.at(1));
      EXPECT_EQ(plan.floor, u.at("min_memory"));
      EXPECT_GE(plan.optimal, ChainProof::kPersistent);
    }
    const ChainOutcome below = solve_chain(chain, u.at("min_memory").get<Bytes>() - 1);
    EXPECT_EQ(std::get<ChainInfeasible>(below).floor, u.at("min_memory"));
  }
}

// Percent of the records' bytes, besides x_0, and percent of extra time, from an exact programme in
// another language.
TEST(KnownUniformChains, ThousandStepsOfAnLstm) {
  const std::vector<std::pair<double, double>> rows = {{10, 30.1}, {5, 31.9}, {3, 32.7},
                                                       {2, 41.9},  {1, 61.7}, {0.5, 95.0}};
  for (const auto& [memory, extra] : rows) {
    const auto budget = static_cast<Bytes>(std::lround(memory / 100 * 4000)) + 1;
    const ChainOutcome outcome = solve_chain(lstm_like(1000), budget);
    EXPECT_NEAR(100.0 * static_cast<double>(std::get<ChainPlan>(outcome).cost - 3000) / 3000, extra,
                0.05001)
        << memory;
  }
}

TEST(UniformChains, EqualTheGeneralTable) {
  Random random(30);
  for (int round = 0; round < 60; ++round) {
    UniformChain c;
    c.steps = random.below(14);
    c.a = random.below(6);
    c.b = c.a + random.below(12);
    c.g = random.below(6);
    c.uf = random.below(5);
    c.ub = random.below(5);
    c.of = random.below(5);
    c.ob = random.below(5);
    c.ul = random.below(5);
    c.ol = random.below(20);
    SCOPED_TRACE("round " + std::to_string(round));
    const ChainProblem problem = expand(c);
    const ChainTable table(problem, {});
    const Bytes floor = table.answers().front().memory;
    EXPECT_EQ(std::get<ChainInfeasible>(solve_chain(c, floor - 1)).floor, floor);
    for (const StairStep& step : table.answers()) {
      const ChainOutcome outcome = solve_chain(c, step.memory);
      const auto& plan = std::get<ChainPlan>(outcome);
      EXPECT_EQ(plan.cost, step.cost);
      EXPECT_EQ(plan.floor, floor);
      const UniformSlopes slopes(c, step.memory);
      EXPECT_LE(*slopes.bound(true, c.steps, step.memory - c.a, false), step.cost);
    }
  }
}

TEST(UniformChains, HundredThousandStepsAreWithinHalfAPercentOfTheBound) {
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (const double percent : {0.2, 1.0, 5.0, 50.0}) {
    const auto budget = static_cast<Bytes>(percent / 100 * 400'000);
    const ChainOutcome outcome = solve_chain(lstm_like(100'000), budget);
    const auto& plan = std::get<ChainPlan>(outcome);
    EXPECT_LE(static_cast<double>(plan.cost), 1.005 * static_cast<double>(plan.persistent_bound));
    EXPECT_GE(plan.cost, plan.persistent_bound);
    EXPECT_LE(plan.peak, budget);
    EXPECT_LT(plan.cost, before);
    before = plan.cost;
    const ChainReplay r = replay(expand(lstm_like(100'000)), plan.program.instructions());
    ASSERT_FALSE(r.fault) << r.fault->message;
    EXPECT_EQ(r.cost, plan.cost);
  }
}

TEST(UniformChains, MillionStepsStayShort) {
  const ChainOutcome outcome = solve_chain(lstm_like(1'000'000), 8'000);
  const auto& plan = std::get<ChainPlan>(outcome);
  EXPECT_LE(static_cast<double>(plan.cost), 1.005 * static_cast<double>(plan.persistent_bound));
  EXPECT_GE(plan.program.instruction_count(), 2'000'000);
  EXPECT_LT(plan.program.runs().size(), 20'000u);
}

// Rolled out from parts of at most `parts` stages, a chain that the exact table knows as a whole.
TEST(UniformChains, RolloutIsCloseToTheOptimum) {
  const UniformChain c = lstm_like(500);
  const UniformTable whole(c, 500, 500, 2'100, {});
  const UniformTable parts(c, 30, 30, 2'100, {});
  for (const Bytes memory : {8, 12, 20, 50, 100, 400, 1500}) {
    const UniformSlopes slopes(c, memory);
    const std::int64_t best = step_within(whole.q(500), memory)->cost;
    const ChainReplay r = replay(expand(c), roll_out(c, parts, slopes, memory).instructions());
    ASSERT_FALSE(r.fault) << r.fault->message;
    EXPECT_LE(r.peak, memory + c.a);
    EXPECT_GE(r.cost, best);
    EXPECT_LE(static_cast<double>(r.cost), 1.017 * static_cast<double>(best)) << memory;
    EXPECT_LE(*slopes.bound(true, 500, memory, false), best) << memory;
  }
}

TEST(UniformChains, RefusesByNameAndValue) {
  UniformChain c = lstm_like(10);
  c.b = 0;
  EXPECT_THROW(validate(c), base::Error);
  c = lstm_like(-1);
  EXPECT_THROW(validate(c), base::Error);
  c = lstm_like(1'000'000);
  c.uf = std::int64_t{1} << 40;
  EXPECT_THROW(validate(c), base::Error);
}

TEST(Revolve, CountsAreExact) {
  const nlohmann::json rows = chains::known().at("revolve");
  for (const auto& r : rows) {
    const RevolveCounts counts = revolve_counts(r.at(0), r.at(1));
    EXPECT_EQ(counts.repetitions, r.at(2)) << r;
    EXPECT_EQ(counts.extra_forwards, r.at(3)) << r;
  }
  EXPECT_GT(rows.size(), 10u);
}

// a = 1, g = 0, b = c + 2, ub = 0 and a budget of c + 1 + b: a record leaves no room for another,
// and one unit more holds the state that goes forward.
TEST(Revolve, IsAUniformChainOfBigRecords) {
  for (std::int64_t n = 1; n <= 30; ++n) {
    for (std::int64_t c = 1; c <= 6; ++c) {
      UniformChain chain;
      chain.steps = n;
      chain.a = chain.uf = 1;
      chain.b = c + 2;
      const ChainOutcome outcome = solve_chain(chain, c + 1 + chain.b);
      EXPECT_EQ(std::get<ChainPlan>(outcome).cost, n + revolve_counts(n, c).extra_forwards)
          << n << " steps, " << c << " checkpoints";
    }
  }
}

}  // namespace
}  // namespace reprise::planner
