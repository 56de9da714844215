// The promises of the project, on whole training steps: a plan changes neither bits nor the peak it
// states.

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <optional>

#include "api/session.h"
#include "base/error.h"
#include "graph/text.h"
#include "models/model.h"
#include "tests/api/random_graph.h"
#include "tests/api/shrink.h"

namespace reprise::api {
namespace {

struct Result {
  std::uint64_t hash = 0;
  std::vector<float> losses;
  PlanReport report;
  Bytes measured = 0;
};

// Deterministic data for every input of the graph.
void fill_inputs(Session& session, const graph::Graph& graph, int step) {
  for (const graph::Value& value : graph.values) {
    if (value.role != graph::Role::kInput) continue;
    const auto count = static_cast<std::size_t>(graph::element_count(value.shape));
    if (value.dtype == graph::DType::kI32) {
      std::vector<std::int32_t> ids(count);
      for (std::size_t i = 0; i < count; ++i)
        ids[i] = static_cast<std::int32_t>((i * 7 + static_cast<std::size_t>(step) * 3) % 5);
      session.set_input(value.name, std::as_bytes(std::span(ids)));
    } else {
      std::vector<float> data(count);
      for (std::size_t i = 0; i < count; ++i) {
        data[i] =
            static_cast<float>((i * 37 + static_cast<std::size_t>(step) * 11) % 23) / 11.0f - 1.0f;
      }
      session.set_input(value.name, std::as_bytes(std::span(data)));
    }
  }
}

graph::TrainingOptions sgd() {
  return {.optimizer =
              graph::SgdAttributes{.rate = {.base = 0.05}, .momentum = 0.9, .weight_decay = 1e-3}};
}

// Nothing when the budget is infeasible.
std::optional<Result> try_run(const models::Model& model, const SessionOptions& options,
                              int steps) {
  auto created = Session::create(model, {}, sgd(), options);
  if (std::holds_alternative<planner::Infeasible>(created)) return std::nullopt;
  auto& session = *std::get<std::unique_ptr<Session>>(created);
  Result result;
  for (int step = 0; step < steps; ++step) {
    fill_inputs(session, model.graph, step);
    result.losses.push_back(session.step());
  }
  result.hash = session.state_hash();
  result.report = session.report();
  result.measured = session.peak_bytes_measured();
  return result;
}

Result run(const models::Model& model, const SessionOptions& options, int steps) {
  const auto result = try_run(model, options, steps);
  EXPECT_TRUE(result.has_value()) << options.plan.planner << " is infeasible";
  return result.value_or(Result{});
}

SessionOptions with(const std::string& device, const std::string& planner, const Budget& budget,
                    bool debug) {
  SessionOptions options;
  options.device = device;
  options.plan.planner = planner;
  options.plan.budget = budget;
  options.plan.search_moves = 5;  // any plan will do, and there are thousands
  options.debug = debug;
  return options;
}

Budget bytes(Bytes count) {
  return {.kind = Budget::Kind::kBytes, .bytes = count};
}

// The first promise that a plan breaks, or nothing.
std::string broken_promise(const Result& result, const Result& keep_all, Bytes budget) {
  if (result.hash != keep_all.hash) return "another state than keep_all's";
  if (result.losses != keep_all.losses) return "other losses than keep_all's";
  if (result.measured != result.report.peak_bytes)
    return fmt::format("measured {}, planned {}", result.measured, result.report.peak_bytes);
  if (result.measured > budget) return fmt::format("measured {}", result.measured);
  return "";
}

// How much a test runs of each model.
struct Effort {
  std::string device = "cpu";
  int steps = 2;
  bool debug = false;
  int budgets = 2;
};

// Every strategy at budgets from what keep_all takes down to the strategy's floor: the first broken
// promise with the plan that breaks it, or nothing.
std::string fault_of_any_plan(const models::Model& model, const Effort& effort) {
  const Result keep_all =
      run(model, with(effort.device, "keep_all", {}, effort.debug), effort.steps);
  if (keep_all.measured != keep_all.report.peak_bytes)
    return fmt::format("keep_all: measured {}, planned {}", keep_all.measured,
                       keep_all.report.peak_bytes);
  for (const planner::Strategy* strategy : planner::all_strategies()) {
    if (strategy->name() == "keep_all") continue;
    const Bytes most = keep_all.report.keep_all_bytes;
    const Bytes floor = keep_all.report.floor_bytes;
    for (int i = 0; i <= effort.budgets; ++i) {
      const Bytes wanted = most - (most - floor) * i / effort.budgets;
      const std::string name(strategy->name());
      SessionOptions options = with(effort.device, name, bytes(wanted), effort.debug);
      options.plan.find_floor = false;
      const auto tried = try_run(model, options, effort.steps);
      // The floor of another strategy may lie above that of auto.
      if (!tried && name == "auto") return fmt::format("auto is infeasible at {}", wanted);
      if (!tried) continue;
      const std::string broken = broken_promise(*tried, keep_all, wanted);
      if (!broken.empty()) return fmt::format("{} at {}: {}", name, wanted, broken);
    }
  }
  return "";
}

void expect_same_bits_for_all_plans(const models::Model& model, const Effort& effort) {
  EXPECT_EQ(fault_of_any_plan(model, effort), "");
}

// The same of a random network, where an Error is a fault too; a failing one is made small first.
void expect_same_bits_of_random(const models::Model& model, const Effort& effort) {
  const auto fault = [&](const models::Model& each, bool shrunk) -> std::string {
    try {
      return fault_of_any_plan(each, effort);
    } catch (const base::Error& error) {
      // A network cut too far is refused; that is not the fault we look for.
      return shrunk && error.kind() == base::ErrorKind::kInput ? "" : error.what();
    }
  };
  const std::string found = fault(model, false);
  if (found.empty()) return;
  const models::Model small =
      shrink(model, [&](const models::Model& each) { return !fault(each, true).empty(); });
  ADD_FAILURE() << found << "\nSmallest network that fails (" << fault(small, true) << "):\n"
                << graph::print_graph(small.graph);
}

TEST(Invariance, SmallResnetHasTheSameBitsForAllPlansOnTheCpu) {
  expect_same_bits_for_all_plans(
      models::make_model("resnet20",
                         {.batch = 2, .channels = 1, .height = 8, .width = 8, .classes = 5}),
      {.steps = 3, .budgets = 3});
}

TEST(Invariance, LstmWithDropoutHasTheSameBitsForAllPlansOnTheCpu) {
  expect_same_bits_for_all_plans(models::make_model("lstm", {.batch = 2,
                                                             .hidden = 8,
                                                             .layers = 2,
                                                             .vocabulary = 5,
                                                             .seq_len = 24,
                                                             .chunk = 3,
                                                             .dropout = 0.25}),
                                 {.steps = 3, .budgets = 3});
}

TEST(Invariance, UnetAndDensenetWithoutSingleTensorCutsHaveTheSameBits) {
  for (const char* name : {"unet", "densenet"}) {
    expect_same_bits_for_all_plans(
        models::make_model(name,
                           {.batch = 2, .channels = 1, .height = 8, .width = 8, .classes = 5}),
        {});
  }
}

// 500 random networks; each runs in the executor's debug mode, where every stray byte shows.
class RandomGraphs : public testing::TestWithParam<int> {};

TEST_P(RandomGraphs, GiveTheSameBitsAndTheStatedPeakForAllPlans) {
  constexpr int kPerShard = 50;
  for (int i = 0; i < kPerShard; ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * kPerShard + i);
    const int ops = 4 + 4 * static_cast<int>(seed % 3);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(ops) + " ops");
    expect_same_bits_of_random(make_random_model(seed, ops),
                               {.device = seed % 5 == 0 ? "reference" : "cpu", .debug = true});
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphs, testing::Range(0, 10));

TEST(Budget, OneByteBelowTheFloorIsInfeasibleAndTheFloorTrains) {
  const models::Model model = models::make_model(
      "resnet20", {.batch = 2, .channels = 1, .height = 8, .width = 8, .classes = 5});
  const Result at_floor = run(model, with("cpu", "auto", {.kind = Budget::Kind::kFloor}, false), 1);
  EXPECT_EQ(at_floor.measured, at_floor.report.floor_bytes);
  const auto below =
      Session::create(model, {}, {.optimizer = graph::SgdAttributes{.momentum = 0.9}},
                      with("cpu", "auto", bytes(at_floor.report.floor_bytes - 1), false));
  ASSERT_TRUE(std::holds_alternative<planner::Infeasible>(below));
  const auto& infeasible = std::get<planner::Infeasible>(below);
  EXPECT_EQ(infeasible.floor, at_floor.report.floor_bytes);
  EXPECT_FALSE(infeasible.bound_by.empty());
  EXPECT_FALSE(infeasible.largest.empty());
}

TEST(Budget, MoreNeverCostsMoreAtTwentyBudgets) {
  const models::Model model = models::make_model(
      "resnet20", {.batch = 2, .channels = 1, .height = 8, .width = 8, .classes = 5});
  const Result keep_all = run(model, with("cpu", "keep_all", {}, false), 1);
  std::int64_t cheapest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 20; ++i) {
    const Bytes floor = keep_all.report.floor_bytes;
    const Bytes budget = floor + (keep_all.report.keep_all_bytes - floor) * i / 19;
    SessionOptions options = with("cpu", "auto", bytes(budget), false);
    options.plan.find_floor = false;
    const Result result = run(model, options, 1);
    EXPECT_LE(result.report.cost_ns, cheapest) << budget;
    EXPECT_LE(result.measured, budget);
    cheapest = result.report.cost_ns;
  }
  EXPECT_EQ(cheapest, keep_all.report.cost_ns);
}

}  // namespace
}  // namespace reprise::api
