// Local search for one budget, with a caller that has a clock.

#include <atomic>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "planner/strategy.h"
#include "planner/structure.h"
#include "tests/planner/op_graphs.h"
#include "tests/planner/plan_checks.h"
#include "tests/planner/random_training.h"

namespace reprise::planner {
namespace {

// Says stop when asked for the n-th time: a clock that is the same everywhere.
std::function<bool()> stop_after(int asked) {
  auto left = std::make_shared<std::atomic<int>>(asked);
  return [left] { return --*left <= 0; };
}

// Half a second of one core is about 1,000 questions, 512 moves apart. Most searches need few, so
// those that do not get there are repeated in full.
constexpr int kShortSearch = 60;
constexpr int kHalfASecond = 800;

TEST(FocusedSearch, ReachesKnownOptimaOfBothOrders) {
  int cases = 0, reached = 0;
  for (const auto& graph : testing::graphs()) {
    const Problem problem = testing::read_problem(graph);
    for (const OrderFreedom freedom : {OrderFreedom::kFree, OrderFreedom::kFixed}) {
      for (const auto& c : graph.at("cases")) {
        const auto& known = c.at(freedom == OrderFreedom::kFree ? 1 : 2);
        SCOPED_TRACE(problem.name + " within " + c.at(0).dump());
        Request request;
        request.problem = &problem;
        request.budget = c.at(0);
        request.measure = Measure::kLivePeak;
        request.order = freedom;
        const auto is_right = [&](const Outcome& outcome) {
          const Plan* plan = std::get_if<Plan>(&outcome);
          return plan == nullptr ? known.is_null() : plan->cost == known;
        };
        request.stop = stop_after(kShortSearch);
        Outcome outcome = find_strategy("dag").plan(request);
        if (!is_right(outcome)) {
          request.stop = stop_after(kHalfASecond);
          outcome = find_strategy("dag").plan(request);
        }
        const Plan* plan = std::get_if<Plan>(&outcome);
        ++cases;
        ASSERT_FALSE(known.is_null() && plan != nullptr);
        if (plan != nullptr) {
          EXPECT_GE(plan->cost, known.get<std::int64_t>());
          EXPECT_TRUE(freedom == OrderFreedom::kFree || is_fixed_order(problem, plan->order));
        }
        const bool right = is_right(outcome);
        if (!right) {
          fmt::print("{} {} within {}: {} instead of {}\n", problem.name,
                     freedom == OrderFreedom::kFree ? "free" : "fixed", c.at(0).dump(),
                     plan == nullptr ? -1 : plan->cost, known.dump());
        }
        reached += right;
      }
    }
  }
  EXPECT_GE(reached * 100, cases * 99) << reached << " of " << cases;
}

TEST(FocusedSearch, ThreadsDoNotChangeASearchThatIsNotStopped) {
  // Optimal at once, so that the search ends by itself before it is stopped.
  const Problem problem = testing::read_problem(testing::graphs().at(0));
  for (int threads : {1, 2, 3}) {
    Request request;
    request.problem = &problem;
    request.budget = 29;  // what keep_all takes: cost 28
    request.measure = Measure::kLivePeak;
    request.threads = threads;
    request.stop = [] { return false; };
    EXPECT_EQ(std::get<Plan>(find_strategy("dag").plan(request)).cost, 28);
  }
}

TEST(FocusedSearch, PlansFitWhenStoppedAtAnyTime) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Problem problem = testing::TrainingDrawer(seed).run(3 + static_cast<int>(seed % 12));
    Request request;
    request.problem = &problem;
    request.cache = make_plan_cache();
    request.threads = 2;
    request.order = seed % 2 == 0 ? OrderFreedom::kFixed : OrderFreedom::kFree;
    request.budget = Bytes{1} << 60;
    const Bytes all = std::get<Plan>(find_strategy("keep_all").plan(request)).arena;
    if (all == 0) continue;
    std::int64_t last_cost = 0;
    for (int percent : {60, 80, 100}) {
      request.budget = std::max<Bytes>(all * percent / 100, 1);
      request.stop = stop_after(static_cast<int>(seed % 40));
      const Outcome outcome = find_strategy("dag").plan(request);
      const Plan* plan = std::get_if<Plan>(&outcome);
      if (plan == nullptr) {
        EXPECT_EQ(last_cost, 0) << "planned for less";
        continue;
      }
      EXPECT_EQ(testing::check_plan(problem, *plan, request.budget), std::nullopt);
      EXPECT_TRUE(last_cost == 0 || plan->cost <= last_cost);
      last_cost = plan->cost;
    }
  }
}

}  // namespace
}  // namespace reprise::planner
