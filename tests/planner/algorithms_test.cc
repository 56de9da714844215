// Several algorithms for an op: which one a plan picks, against brute force.

#include "planner/algorithms.h"

#include <random>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "planner/exact_search.h"
#include "planner/strategies.h"
#include "tests/planner/plan_checks.h"
#include "tests/planner/random_algorithms.h"
#include "tests/planner/random_training.h"
#include "tests/schedule/problem_builder.h"

namespace reprise::planner {
namespace {

using schedule::OpId;
using schedule::TensorKind;
using ::testing::ElementsAre;

// x(10, resident) > f > a(4) > g > b(4, output); f runs within 10 + 4 + workspace, g within
// 10 + 4 + 4 + workspace.
schedule::testing::ProblemBuilder two_ops() {
  schedule::testing::ProblemBuilder p;
  p.tensor("x", 10, TensorKind::kResident).tensor("a", 4).tensor("b", 4, TensorKind::kOutput);
  (void)schedule::set_algorithms(p.op("f", {"x"}, {"a"}), {{9, 1}, {3, 5}});
  (void)schedule::set_algorithms(p.op("g", {"a"}, {"b"}), {{6, 2}, {2, 3}, {0, 10}});
  return p;
}

TEST(Algorithms, EachOpTakesTheCheapestThatFitsBesideWhatIsLive) {
  auto p = two_ops();
  const OrderAlgorithms algorithms(p.problem(), p.order({"f", "g"}));
  // Leanest: f 14 + 3 = 17, g 18 + 0 = 18.
  EXPECT_EQ(algorithms.least(), 18);
  EXPECT_THAT(algorithms.within(18), ElementsAre(1, 2));
  EXPECT_THAT(algorithms.within(19), ElementsAre(1, 2));
  EXPECT_THAT(algorithms.within(20), ElementsAre(1, 1));  // g 18 + 2
  EXPECT_THAT(algorithms.within(23), ElementsAre(0, 1));  // f 14 + 9
  EXPECT_THAT(algorithms.within(24), ElementsAre(0, 0));  // g 18 + 6
  EXPECT_THAT(algorithms.within(1), ElementsAre(1, 2));   // nothing fits: the leanest
  std::vector<std::pair<Bytes, std::int64_t>> levels;
  for (const auto& level : algorithms.levels(10)) {
    levels.emplace_back(level.live_peak, level.cost);
  }
  using P = std::pair<Bytes, std::int64_t>;
  EXPECT_THAT(levels, ElementsAre(P{18, 15}, P{20, 8}, P{23, 4}, P{24, 3}));
  // At most two more than asked for, with both ends.
  const auto few = algorithms.levels(1);
  EXPECT_EQ(few.front().live_peak, 18);
  EXPECT_EQ(few.back().live_peak, 24);
  EXPECT_LE(few.size(), 3u);
}

TEST(Algorithms, AnOpThatRunsTwiceKeepsTheAlgorithmThatFitsBothTimes) {
  auto p = two_ops();
  // The second run of f is beside b: 10 + 4 + 4 + 9 = 27, where the first takes 23.
  const OrderAlgorithms algorithms(p.problem(), p.order({"f", "g", "f"}));
  EXPECT_EQ(algorithms.within(26)[0], 1);
  EXPECT_EQ(algorithms.within(27)[0], 0);
  EXPECT_EQ(algorithms.levels(10).back().cost, 2 + 2 * 1);
}

TEST(Algorithms, PlansOneByteApartDecideBetweenTwo) {
  auto p = two_ops();
  for (const Strategy* strategy : all_strategies()) {
    SCOPED_TRACE(strategy->name());
    Request request;
    request.problem = &p.problem();
    request.measure = Measure::kLivePeak;
    request.cache = make_plan_cache();
    EXPECT_EQ(strategy->floor(request), 18);
    for (const auto& [budget, cost] : {std::pair<Bytes, std::int64_t>{18, 15},
                                       {19, 15},
                                       {20, 8},
                                       {22, 8},
                                       {23, 4},
                                       {24, 3},
                                       {1000, 3}}) {
      request.budget = budget;
      const Plan plan = std::get<Plan>(strategy->plan(request));
      EXPECT_EQ(plan.cost, cost) << budget;
      EXPECT_LE(plan.live_peak, budget);
    }
    request.budget = 17;
    EXPECT_EQ(std::get<Infeasible>(strategy->plan(request)).floor, 18);
  }
}

// Every way to hold each op to one of its algorithms, as a problem of its own.
std::vector<Problem> all_held(const Problem& problem) {
  std::vector<Problem> held{problem};
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    std::vector<Problem> next;
    for (const Problem& p : held) {
      for (std::size_t k = 0; k < problem.ops[OpId(i)].choices(); ++k) {
        const schedule::Algorithm algorithm = problem.ops[OpId(i)].algorithm(k);
        next.push_back(p);
        schedule::Op& op = next.back().ops[OpId(i)];
        op.workspace = algorithm.workspace;
        op.cost = algorithm.cost;
        op.leaner.clear();
      }
    }
    held = std::move(next);
  }
  return held;
}

// The optimum over all of them; nothing where none fits.
std::optional<std::int64_t> brute_force(const std::vector<Problem>& held, OrderFreedom freedom,
                                        Bytes budget) {
  std::optional<std::int64_t> best;
  for (const Problem& problem : held) {
    const ExactAnswer answer = solve_exactly(ExactModel(problem, freedom), budget, 100'000);
    EXPECT_NE(answer.kind, ExactAnswer::Kind::kGivenUp);
    if (answer.kind != ExactAnswer::Kind::kOptimal) continue;
    best = std::min(best.value_or(answer.cost), answer.cost);
  }
  return best;
}

struct Count {
  int cases = 0, reached = 0, below_floor = 0;
  int mixed = 0;  // optima in which not all algorithms are the fastest
};

void compare(const Problem& problem, OrderFreedom freedom, Count& count) {
  const std::vector<Problem> held = all_held(problem);
  Request request;
  request.problem = &problem;
  request.order = freedom;
  request.measure = Measure::kLivePeak;
  request.cache = make_plan_cache();
  request.search_moves = 100;
  const Bytes floor = exact_strategy().floor(request);
  request.budget = Bytes{1} << 50;
  const Bytes top = std::get<Plan>(exact_strategy().plan(request)).live_peak;
  EXPECT_FALSE(brute_force(held, freedom, floor - 1)) << "below the floor " << floor;
  for (int i = 0; i <= 3; ++i) {
    request.budget = std::max<Bytes>(floor + (top - floor) * i / 3, 1);
    const auto best = brute_force(held, freedom, request.budget);
    ASSERT_TRUE(best) << request.budget;
    const Plan exact = std::get<Plan>(exact_strategy().plan(request));
    EXPECT_EQ(exact.cost, *best) << "budget " << request.budget;
    EXPECT_EQ(exact.cost_lower_bound, *best);
    // The first two searches for this one budget, and no clock.
    Request focused = request;
    focused.cache = nullptr;
    focused.stop = [asked = 0]() mutable { return ++asked > 160; };
    const Outcome outcome = dag_strategy().plan(focused);
    const Plan* dag = std::get_if<Plan>(&outcome);
    ++count.cases;
    if (dag == nullptr) {
      ++count.below_floor;
      // A floor that it does not reach with the leanest algorithms either.
      const Problem lean = leanest_problem(problem);
      focused.problem = &lean;
      focused.stop = [asked = 0]() mutable { return ++asked > 160; };
      EXPECT_TRUE(std::holds_alternative<Infeasible>(dag_strategy().plan(focused)));
      continue;
    }
    EXPECT_GE(dag->cost, *best);
    count.reached += dag->cost == *best ? 1 : 0;
    const auto fast = std::count(exact.choices.begin(), exact.choices.end(), 0);
    count.mixed += fast < std::ssize(exact.choices) ? 1 : 0;
  }
}

TEST(Algorithms, ExactEqualsBruteForceAndLocalSearchReachesIt) {
  Count count;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    Problem problem = testing::TrainingDrawer(seed).run(1 + static_cast<int>(seed % 3));
    testing::add_random_algorithms(random, problem, 4);
    compare(problem, seed % 4 == 0 ? OrderFreedom::kFixed : OrderFreedom::kFree, count);
    if (HasFailure()) return;
  }
  EXPECT_EQ(count.cases, 160);
  EXPECT_GE(count.reached + count.below_floor, 158) << "of " << count.cases;
  EXPECT_LE(count.below_floor, 16);
  EXPECT_GE(count.mixed, 40);
}

TEST(Algorithms, PlansHoldOnRandomProblemsWithEveryStrategy) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    Problem problem = seed % 2 == 0 ? testing::TrainingDrawer(seed).run(4)
                                    : schedule::testing::draw_problem(random);
    testing::add_random_algorithms(random, problem, 10);
    if (!testing::is_sound(problem)) continue;
    const auto fault = testing::check_all_strategies(problem);
    ASSERT_FALSE(fault) << "seed " << seed << ": " << *fault << "\n" << testing::print(problem);
  }
}

}  // namespace
}  // namespace reprise::planner
