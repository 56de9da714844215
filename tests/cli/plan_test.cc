// plan and sweep: documents, budgets at and around the floor, what the breakdown adds up to.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json plan(const std::vector<std::string>& flags) {
  const Ran ran = run_cli(with(with({"plan", "--json"}, kTiny), flags));
  EXPECT_EQ(ran.code, 0) << ran.out;
  return ran.document();
}

TEST(PlanCommand, TheDocumentHasTheFixedNames) {
  const Json document = plan({"--budget", "floor"});
  for (const char* name :
       {"model", "planner", "nodes", "budget_bytes", "peak_bytes", "floor_bytes", "keep_all_bytes",
        "cost_ns", "keep_all_cost_ns", "overhead", "lower_bound_ns", "gap", "recomputed_nodes",
        "fragmentation", "plan_ms"}) {
    EXPECT_TRUE(document.contains(name)) << name;
  }
  EXPECT_EQ(document["model"], "mlp");
}

TEST(PlanCommand, PrecisionIsSaidAndShrinksThePlan) {
  // 256 images of 32 pixels through twelve layers of 32: activations are most of the step.
  const auto planned = [](const std::string& precision) {
    return run_cli({"plan", "--model", "mlp", "--batch", "256", "--image", "1x4x8", "--hidden",
                    "32", "--layers", "12", "--classes", "3", "--threads", "1", "--precision",
                    precision, "--json"})
        .document();
  };
  const Json f32 = planned("f32"), bf16 = planned("bf16");
  EXPECT_EQ(f32["precision"], "f32");
  EXPECT_EQ(bf16["precision"], "bf16");
  EXPECT_LT(bf16["peak_bytes"], f32["peak_bytes"].get<double>() * 0.75);
  EXPECT_EQ(bf16["persistent_bytes"], f32["persistent_bytes"]);
  EXPECT_EQ(bf16["parameters"], f32["parameters"]);
  const Ran text = run_cli(with(with({"plan"}, kTiny), {"--precision", "bf16"}));
  EXPECT_THAT(text.out, HasSubstr("bf16, of f32 weights"));
}

TEST(PlanCommand, WithoutABudgetNothingIsRecomputed) {
  const Json document = plan({});
  EXPECT_EQ(document["recomputed_nodes"], 0);
  EXPECT_EQ(document["overhead"], 0.0);
  // The same buffers as keep_all's; auto may pack them a little tighter.
  EXPECT_LE(document["peak_bytes"], document["keep_all_bytes"]);
  EXPECT_GT(document["peak_bytes"], document["keep_all_bytes"].get<double>() * 0.99);
  EXPECT_EQ(document["gap"], 0.0);
}

TEST(PlanCommand, ParametersAreCountedAsWritten) {
  // 16 inputs -> 4 layers of 16 -> 3 classes: 4 * (16 * 16 + 16) + 3 * 16 + 3.
  EXPECT_EQ(plan({})["parameters"], 4 * (16 * 16 + 16) + 3 * 16 + 3);
}

TEST(PlanCommand, UpdatesAtTheEndHoldAllGradients) {
  // Batch 1: activations of 64 bytes, six weights of 4 KiB; all their gradients against one.
  const auto floor_of = [](const std::string& updates) {
    return run_cli({"plan", "--model", "mlp", "--batch", "1", "--image", "1x4x8", "--hidden", "32",
                    "--layers", "6", "--classes", "3", "--threads", "1", "--updates", updates,
                    "--json"})
        .document()["floor_bytes"]
        .get<std::int64_t>();
  };
  EXPECT_GE(floor_of("end") - floor_of("auto"), 4 * 4096);
}

// What is least for each pass of several need not be least together, once the whole is packed: here
// auto's passes alone need 85,312 bytes, revolve's 83,840.
TEST(PlanCommand, AutoFitsWhereASimplerPlannerDoesWithMicroBatches) {
  const std::vector<std::string> flags = {
      "plan", "--model",      "lstm", "--hidden",  "5",        "--batch",  "3",       "--seq-len",
      "11",   "--chunk",      "2",    "--dropout", "0.3",      "--layers", "2",       "--optimizer",
      "adam", "--accumulate", "3",    "--costs",   "analytic", "--json",   "--budget"};
  const Ran simple = run_cli(with(flags, {"floor", "--planner", "revolve"}));
  ASSERT_EQ(simple.code, 0) << simple.err;
  const auto least = simple.document()["peak_bytes"].get<std::int64_t>();
  EXPECT_LT(least, simple.document()["keep_all_bytes"]);
  const Ran ran = run_cli(with(flags, {std::to_string(least)}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_LE(ran.document()["floor_bytes"], least);
}

// These were packed into 64 bytes less than the floor, which were then refused.
TEST(PlanCommand, WhatThePlanAtTheFloorTakesIsTheFloor) {
  for (const char* shape : {"12 2", "24 3"}) {
    const std::string text = shape;
    const std::vector<std::string> flags = {"plan",
                                            "--model",
                                            "lstm",
                                            "--hidden",
                                            "8",
                                            "--batch",
                                            "2",
                                            "--layers",
                                            "1",
                                            "--seq-len",
                                            text.substr(0, 2),
                                            "--chunk",
                                            text.substr(3),
                                            "--vocabulary",
                                            "16",
                                            "--precision",
                                            "bf16",
                                            "--costs",
                                            "analytic",
                                            "--json",
                                            "--budget"};
    const Ran floor = run_cli(with(flags, {"floor"}));
    ASSERT_EQ(floor.code, 0) << floor.err;
    EXPECT_EQ(floor.document()["peak_bytes"], floor.document()["floor_bytes"]);
    const auto bytes = floor.document()["peak_bytes"].get<std::int64_t>();
    EXPECT_EQ(run_cli(with(flags, {std::to_string(bytes)})).code, 0);
    EXPECT_EQ(run_cli(with(flags, {std::to_string(bytes - 1)})).code, 3);
  }
}

TEST(PlanCommand, TheCategoriesAddUpToThePeak) {
  for (const char* budget : {"unlimited", "floor"}) {
    const Json document = plan({"--budget", budget});
    std::int64_t sum = 0;
    for (const auto& [name, bytes] : document["peak_categories"].items()) {
      sum += bytes.get<std::int64_t>();
    }
    EXPECT_EQ(sum, document["peak_bytes"].get<std::int64_t>()) << budget;
  }
}

TEST(PlanCommand, PartsAndOpsCountTheSameRuns) {
  const Json document = plan({"--budget", "floor"});
  for (const char* list : {"parts", "ops"}) {
    std::int64_t extra = 0;
    std::int64_t extra_ns = 0;
    for (const Json& row : document[list]) {
      extra += row["extra_runs"].get<std::int64_t>();
      extra_ns += row["extra_ns"].get<std::int64_t>();
      EXPECT_LE(row["recomputed_nodes"], row["nodes"]);
    }
    EXPECT_GT(extra, 0) << list;
    // Only forward nodes are listed; a plan may repeat others too.
    EXPECT_LE(extra, document["recomputed_nodes"].get<std::int64_t>()) << list;
    EXPECT_LE(extra_ns, document["cost_ns"].get<std::int64_t>() -
                            document["keep_all_cost_ns"].get<std::int64_t>())
        << list;
  }
}

TEST(PlanCommand, PlansAtTheFloorAndRefusesOneByteBelow) {
  const auto floor = plan({"--budget", "floor"})["floor_bytes"].get<std::int64_t>();
  EXPECT_EQ(plan({"--budget", std::to_string(floor)})["peak_bytes"], floor);

  const auto below = with(with({"plan"}, kTiny), {"--budget", std::to_string(floor - 1)});
  const Ran json = run_cli(with(below, {"--json"}));
  EXPECT_EQ(json.code, 3);
  const Json error = json.document()["error"];
  EXPECT_EQ(error["kind"], "infeasible");
  EXPECT_EQ(error["floor_bytes"], floor);
  EXPECT_NE(error["bound_by"], "");
  EXPECT_FALSE(error["largest"].empty());

  const Ran text = run_cli(below);
  EXPECT_EQ(text.code, 3);
  EXPECT_EQ(text.out, "");
  EXPECT_THAT(text.err, HasSubstr("--budget " + std::to_string(floor)));  // what to do
  EXPECT_THAT(text.err, HasSubstr("iB"));                                 // in MiB or KiB, too
  EXPECT_THAT(text.err, HasSubstr(error["bound_by"].get<std::string>()));
  EXPECT_THAT(text.err, HasSubstr(error["largest"][0]["tensor"].get<std::string>()));
}

TEST(PlanCommand, TheFloorIsThatOfTheChosenPlanner) {
  for (const char* planner : {"keep_all", "segments", "sqrt_n", "exact", "auto"}) {
    SCOPED_TRACE(planner);
    const Json document = plan({"--planner", planner, "--budget", "floor"});
    const auto floor = document["budget_bytes"].get<std::int64_t>();
    EXPECT_LE(document["peak_bytes"], floor);
    EXPECT_LE(document["floor_bytes"], floor);  // of auto, which knows all that they know
    const Ran below = run_cli(with(with({"plan", "--json"}, kTiny),
                                   {"--planner", planner, "--budget", std::to_string(floor - 1)}));
    EXPECT_EQ(below.code, 3);
    EXPECT_EQ(below.document()["error"]["floor_bytes"], floor);
  }
  const Json whole = plan({"--planner", "keep_all", "--budget", "floor"});
  EXPECT_EQ(whole["budget_bytes"], whole["keep_all_bytes"]);
}

TEST(PlanCommand, BudgetsMeanWhatTheySay) {
  const Json whole = plan({});
  const auto keep_all = whole["keep_all_bytes"].get<std::int64_t>();
  EXPECT_EQ(plan({"--budget", "64MiB"})["budget_bytes"], 67'108'864);
  EXPECT_EQ(plan({"--budget", "200%"})["budget_bytes"], 2 * keep_all);
  const Json tight = plan({"--budget", "90%"});
  EXPECT_EQ(tight["budget_bytes"], keep_all * 9 / 10);
  EXPECT_LE(tight["peak_bytes"], tight["budget_bytes"]);
}

TEST(PlanCommand, SaysTheSameInWords) {
  const Ran ran = run_cli(with(with({"plan"}, kTiny), {"--budget", "floor"}));
  EXPECT_EQ(ran.code, 0);
  for (const char* word : {"mlp on cpu", "planner", "keep all", "floor", "certificate",
                           "fragmentation", "The peak", "recomputed", "extra time", "parameter"}) {
    EXPECT_THAT(ran.out, HasSubstr(word)) << ran.out;
  }
}

// keep_all has one budget that it can plan for: its floor is what it takes.
TEST(SweepCommand, BeginsAtTheLeastFloorOfItsPlanners) {
  const Ran ran =
      run_cli(with(with({"sweep", "--json"}, kTiny), {"--budgets", "5", "--planners", "keep_all"}));
  ASSERT_EQ(ran.code, 0) << ran.out;
  const Json document = ran.document();
  ASSERT_EQ(document["points"].size(), 1U);
  EXPECT_EQ(document["points"][0]["budget_bytes"], document["keep_all_bytes"]);
  EXPECT_EQ(document["points"][0]["feasible"], true);
  EXPECT_LT(document["floor_bytes"], document["keep_all_bytes"]);
}

TEST(SweepCommand, GoesFromTheFloorToKeepingEverything) {
  const TempFolder folder;
  const std::string csv = (folder / "sweep.csv").string();
  const Ran ran = run_cli(with(with({"sweep", "--json"}, kTiny),
                               {"--budgets", "5", "--planners", "auto,sqrt_n", "--csv", csv}));
  ASSERT_EQ(ran.code, 0) << ran.out;
  const Json document = ran.document();
  const Json& points = document["points"];
  EXPECT_EQ(points.size(), 10U);
  EXPECT_EQ(points.front()["budget_bytes"], document["floor_bytes"]);
  EXPECT_EQ(points.back()["budget_bytes"], document["keep_all_bytes"]);
  std::int64_t last_cost = std::numeric_limits<std::int64_t>::max();
  for (const Json& point : points) {
    if (point["planner"] != "auto") continue;
    ASSERT_TRUE(point["feasible"]);
    EXPECT_LE(point["peak_bytes"], point["budget_bytes"]);
    EXPECT_LE(point["cost_ns"], last_cost);  // more budget never costs more time
    last_cost = point["cost_ns"].get<std::int64_t>();
  }
  EXPECT_EQ(last_cost, document["keep_all_cost_ns"]);

  std::istringstream lines(read_file(csv));
  std::string line;
  std::getline(lines, line);
  const auto columns = std::count(line.begin(), line.end(), ',');
  std::size_t rows = 0;
  for (; std::getline(lines, line); ++rows) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), columns) << line;
  }
  EXPECT_EQ(rows, points.size());
}

TEST(SweepCommand, StopsWhenAsked) {
  const std::atomic<bool> stop{true};
  const Ran ran = run_cli(with({"sweep", "--json"}, kTiny), {.stop = &stop});
  EXPECT_EQ(ran.code, 0);
  const auto document = ran.document();
  EXPECT_EQ(document["points"].size(), 1u);  // that which was there when it was asked to stop
  EXPECT_EQ(document["stopped_early"], true);
  EXPECT_FALSE(document["warnings"].empty());
}

}  // namespace
}  // namespace reprise::cli
