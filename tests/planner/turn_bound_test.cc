// What the turn alone proves: by hand, against the linear program of one anchor, and against plans.

#include "planner/turn_bound.h"

#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "planner/cost_bound.h"
#include "planner/linear_program.h"
#include "planner/staged_program.h"
#include "tests/planner/op_graphs.h"
#include "tests/planner/random_training.h"

namespace reprise::planner {
namespace {

using schedule::Op;
using schedule::TensorKind;

constexpr std::int64_t kAllEffort = std::numeric_limits<std::int64_t>::max() / 2;

// Layers h1 = f1(x), h2 = f2(h1), ... of 1 byte and cost 1, the last one of them read by `turn`,
// whose output of 0 bytes goes through b_(n-1), ..., b1; b_i reads h_i.
Problem layers(int n) {
  Problem p;
  p.name = "layers";
  const auto tensor = [&](std::string name, Bytes bytes, TensorKind kind) {
    return p.tensors.push_back({std::move(name), bytes, kind});
  };
  std::vector<TensorId> h = {tensor("x", 0, TensorKind::kResident)};
  for (int i = 1; i <= n; ++i) {
    h.push_back(tensor(fmt::format("h{}", i), 1, TensorKind::kTemp));
    p.ops.push_back(Op{.name = fmt::format("f{}", i),
                       .inputs = {h[h.size() - 2]},
                       .outputs = {h.back()},
                       .cost = 1,
                       .inplace = {}});
  }
  auto g = tensor("g", 0, TensorKind::kTemp);
  p.ops.push_back(Op{.name = "turn",
                     .inputs = {h.back()},
                     .outputs = {g},
                     .cost = 1,
                     .backward = true,
                     .inplace = {}});
  for (int i = n - 1; i >= 1; --i) {
    const auto next =
        tensor(fmt::format("g{}", i), 0, i == 1 ? TensorKind::kOutput : TensorKind::kTemp);
    p.ops.push_back(Op{.name = fmt::format("b{}", i),
                       .inputs = {g, h[static_cast<std::size_t>(i)]},
                       .outputs = {next},
                       .cost = 1,
                       .backward = true,
                       .inplace = {}});
    g = next;
  }
  return p;
}

// While `turn` runs h_n is there, and r of the other n - 1; those that are not run again, each from
// the one before it: n - 1 - r.
TEST(TurnBound, CountsWhatDoesNotFitBesideTheTurn) {
  for (const int n : {2, 3, 10, 3'000}) {
    const Problem problem = layers(n);
    const Structure structure(problem);
    for (const int r : {0, 1, n / 3, n - 2}) {
      EXPECT_NEAR(static_cast<double>(turn_bound(structure, 1 + r, kAllEffort)), n - 1 - r,
                  1e-3 * n)
          << n << " layers, room for " << r;
    }
    EXPECT_EQ(turn_bound(structure, n, kAllEffort), 0);
    EXPECT_EQ(turn_bound(structure, 0, kAllEffort), 0) << "the turn itself takes 1";
  }
}

// Half of h1 can be held in the relaxation: 3 bytes of 6 save 2.5 of cost 5.
TEST(TurnBound, IsThatOfTheRelaxation) {
  Problem problem = layers(2);
  problem.tensors[TensorId(1)].bytes = 6;
  problem.ops[OpId(0)].cost = 5;
  const Structure structure(problem);
  EXPECT_EQ(turn_bound(structure, 1, kAllEffort), 5);
  EXPECT_EQ(turn_bound(structure, 4, kAllEffort), 3);  // 2.5, and costs are whole
  EXPECT_EQ(turn_bound(structure, 7, kAllEffort), 0);
}

// Room for two of h1, h2, h3. h1 is the cheap one to make again, unless its op runs once.
TEST(TurnBound, HoldsWhatCannotRunAgain) {
  Problem problem = layers(4);
  problem.ops[OpId(1)].cost = problem.ops[OpId(2)].cost = 10;
  EXPECT_EQ(turn_bound(Structure(problem), 3, kAllEffort), 1);
  problem.ops[OpId(0)].recomputable = false;
  EXPECT_EQ(turn_bound(Structure(problem), 3, kAllEffort), 10);
}

// Two steps of three layers one behind the other: each pass has a turn, where its own layers do not
// fit.
TEST(TurnBound, AddsUpThePasses) {
  const Problem one = layers(3);
  Problem two = one;
  const std::size_t tensors = one.tensors.size();
  for (const schedule::Tensor& tensor : one.tensors) two.tensors.push_back(tensor);
  for (Op op : one.ops) {
    for (TensorId& t : op.inputs) t = TensorId(t.index() + tensors);
    for (TensorId& t : op.outputs) t = TensorId(t.index() + tensors);
    two.ops.push_back(op);
  }
  EXPECT_EQ(turn_bound(Structure(one), 1, kAllEffort), 2);
  EXPECT_EQ(turn_bound(Structure(two), 1, kAllEffort), 4);
}

TEST(TurnBound, IsABoundHoweverLittleEffort) {
  const Problem problem = layers(200);
  const Structure structure(problem);
  std::int64_t before = 0;
  for (const std::int64_t effort : {1, 100, 1'000, 10'000, 100'000, 10'000'000}) {
    const std::int64_t bound = turn_bound(structure, 51, effort);
    EXPECT_LE(bound, 149);
    EXPECT_GE(bound, before);
    before = bound;
  }
  EXPECT_EQ(before, 149);
}

// The linear program of the same turn knows as much or more: there an op that runs on both sides
// pays for both runs, whichever comes first.
TEST(TurnBound, IsNeverAboveTheLinearProgramOfOneAnchor) {
  int compared = 0, equal = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Problem problem =
        testing::TrainingDrawer(seed).run(2 + static_cast<std::int64_t>(seed % 14));
    for (const OrderFreedom freedom : {OrderFreedom::kFree, OrderFreedom::kFixed}) {
      const Structure structure(problem, freedom);
      const std::vector<Index> anchors = choose_anchors(problem, freedom, 1);
      Request request;
      request.problem = &problem;
      request.measure = Measure::kLivePeak;
      request.order = freedom;
      request.search_moves = 10;
      const Bytes floor = find_strategy("auto").floor(request);
      for (const Bytes budget : {floor, floor + floor / 8, floor + floor / 4}) {
        const auto staged = make_staged_program(problem, freedom, budget, anchors, 100'000);
        if (!staged) continue;
        const auto multipliers =
            row_multipliers(staged->program, {.iterations = 20'000, .stop = {}});
        if (!multipliers) GTEST_SKIP() << "built without Clp";
        const auto optimum = static_cast<std::int64_t>(
            std::ceil(dual_bound(staged->program, *multipliers) * staged->cost_unit - 1e-6));
        std::int64_t effort = kAllEffort;
        const std::int64_t bound =
            cost_lower_bound(problem, freedom) +
            turn_bound_at(structure, anchors.front(), 0, structure.ops(), budget, effort);
        EXPECT_LE(bound, optimum + 1) << "seed " << seed << ", budget " << budget;
        compared += optimum > cost_lower_bound(problem, freedom);
        equal += optimum > cost_lower_bound(problem, freedom) &&
                 static_cast<double>(bound) >= static_cast<double>(optimum) * (1 - 1e-3) - 1;
      }
    }
  }
  EXPECT_GT(compared, 50);
  EXPECT_GT(equal, compared / 2) << "of " << compared;
}

TEST(TurnBound, IsNeverAboveAKnownOptimum) {
  int above = 0;
  for (const auto& graph : testing::graphs()) {
    const Problem problem = testing::read_problem(graph);
    for (const OrderFreedom freedom : {OrderFreedom::kFree, OrderFreedom::kFixed}) {
      const Structure structure(problem, freedom);
      for (const auto& c : graph.at("cases")) {
        const auto& known = c.at(freedom == OrderFreedom::kFree ? 1 : 2);
        if (known.is_null()) continue;
        const std::int64_t bound = turn_bound(structure, c.at(0), kAllEffort);
        EXPECT_LE(cost_lower_bound(problem, freedom) + bound, known.get<std::int64_t>())
            << problem.name << " within " << c.at(0);
        above += bound > 0;
      }
    }
  }
  EXPECT_GT(above, 20);
}

}  // namespace
}  // namespace reprise::planner
