// reprise simulate: what its documents say, and wrong flags.

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Ran simulate(const std::vector<std::string>& more) {
  return run_cli(
      with(with({"simulate", "--costs", "analytic", "--planner", "keep_all"}, kTiny), more));
}

std::vector<std::int64_t> worlds(const nlohmann::json& document) {
  std::vector<std::int64_t> ranks;
  for (const auto& world : document["worlds"]) ranks.push_back(world["ranks"]);
  return ranks;
}

TEST(Simulate, WorldsAreListsAndRangesOfPowersOfTwo) {
  EXPECT_THAT(worlds(simulate({"--json", "--world", "8..64"}).document()),
              ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(worlds(simulate({"--json", "--world", "3..20"}).document()),
              ElementsAre(3, 4, 8, 16, 20));
  EXPECT_THAT(worlds(simulate({"--json", "--world", "2,3,8"}).document()), ElementsAre(2, 3, 8));
}

// One rank sums nothing: the step is the plan's. All others are longer, by less than their sums.
TEST(Simulate, EfficiencyIsComputedOverStep) {
  const auto document = simulate({"--json", "--world", "1..256", "--link", "1GB/s"}).document();
  const double cost = document["plan"]["cost_ns"];
  const auto& alone = document["worlds"][0];
  EXPECT_EQ(alone["ring"]["step_ns"], cost);
  EXPECT_EQ(alone["ring"]["efficiency"], 1.0);
  double most = 0;
  for (const auto& world : document["worlds"]) {
    const std::string best = world["best"];
    for (const char* exchange : {"ring", "tree", "two_hop"}) {
      const auto& each = world[exchange];
      const double step = each["step_ns"], sums = each["sums_ns"];
      EXPECT_GE(step, cost);
      EXPECT_LE(step, cost + sums);
      EXPECT_DOUBLE_EQ(each["efficiency"], cost / step);
      EXPECT_GE(step, world[best]["step_ns"].get<double>());
    }
    EXPECT_GE(world["ring"]["step_ns"], most);  // more ranks are never quicker
    most = world["ring"]["step_ns"];
  }
}

// Each batch norm adds a sum of its moments, one of its gradient's, and what makes and takes them;
// the sums of its scale and shift are among the latter.
TEST(Simulate, BatchNormOverTheRanksIsInTheStep) {
  const std::vector<std::string> args = {
      "simulate", "--costs", "analytic", "--planner", "keep_all", "--model", "resnet20",  "--image",
      "1x8x8",    "--batch", "4",        "--json",    "--world",  "4",       "--latency", "100us"};
  const auto own = run_cli(args).document();
  const auto over_all = run_cli(with(args, {"--sync-batch-norm"})).document();
  // resnet20 has 19 of them, and each of the 38 sums is waited for at once: 6 hops of a ring of 4.
  EXPECT_GE(over_all["worlds"][0]["ring"]["step_ns"].get<double>(),
            own["worlds"][0]["ring"]["step_ns"].get<double>() + 30 * 6 * 100e3);
  std::vector<std::string> several = with(args, {"--sync-batch-norm"});
  several[13] = "2..8";
  const Ran refused = run_cli(several);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.error_message(), HasSubstr("give --world one number"));
}

// Latency alone: a ring of 1024 takes 2046 hops for each sum, a tree 20.
TEST(Simulate, LatencyOfManyRanksIsForTrees) {
  const auto document = simulate({"--json", "--world", "2,1024", "--link", "100GB/s", "--latency",
                                  "10us", "--message", "1us"})
                            .document();
  EXPECT_EQ(document["worlds"][1]["best"], "tree");
  const auto sums = document["bucket_bytes"].size();
  EXPECT_GE(document["worlds"][1]["ring"]["sums_ns"], sums * 2046 * 11'000);
}

TEST(Simulate, BucketsAreThoseOfTheFlag) {
  const auto all = simulate({"--json"}).document()["bucket_bytes"];
  const auto each = simulate({"--json", "--bucket", "1"}).document()["bucket_bytes"];
  EXPECT_EQ(all.size(), 1u);
  EXPECT_EQ(each.size(), 10u);  // 5 layers with a weight and a bias each
}

TEST(Simulate, TheTableNamesPlanAndLink) {
  const Ran ran = simulate({"--link", "2GB/s", "--latency", "7us", "--world", "4"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* word : {"mlp", "keep_all", "2GB/s", "7us", "efficiency", "two hops"})
    EXPECT_THAT(ran.out, HasSubstr(word));
}

TEST(Simulate, WrongValuesNameFlagValueAndForm) {
  const std::pair<std::vector<std::string>, std::vector<std::string>> cases[] = {
      {{"--link", "50GB"}, {"--link", "'50GB'", "50GB/s"}},
      {{"--link", "0/s"}, {"--link", "'0/s'"}},
      {{"--link", "fast"}, {"--link", "'fast'"}},
      {{"--latency", "5"}, {"--latency", "'5'", "us"}},
      {{"--latency", "-5us"}, {"--latency", "'-5us'"}},
      {{"--message", "x"}, {"--message", "'x'"}},
      {{"--world", "0"}, {"--world", "'0'", "from 1"}},
      {{"--world", "8..4"}, {"--world", "'8..4'", "more than"}},
      {{"--world", "8..x"}, {"--world", "'x'"}},
      {{"--bucket", "-1"}, {"--bucket", "-1"}},
  };
  for (const auto& [flags, named] : cases) {
    const Ran ran = simulate(flags);
    EXPECT_EQ(ran.code, 2) << flags[0];
    for (const std::string& word : named) EXPECT_THAT(ran.err, HasSubstr(word));
  }
}

TEST(Simulate, ABudgetBelowTheFloorIsInfeasible) {
  EXPECT_EQ(simulate({"--budget", "1KiB"}).code, 3);
}

}  // namespace
}  // namespace reprise::cli
