// profile, and what plan, sweep and train do with its costs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/session.h"
#include "runtime/profiler.h"
#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

// A cache of its own for one test.
class Cache {
 public:
  Cache() { setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }
  ~Cache() { setenv("XDG_CACHE_HOME", "/nonexistent/reprise-tests", 1); }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  [[nodiscard]] const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
};

Ran run_tiny(const std::string& command, const std::vector<std::string>& flags) {
  return run_cli(with(with({command, "--json"}, kTiny), flags));
}

Json document(const std::string& command, const std::vector<std::string>& flags) {
  const Ran ran = run_tiny(command, flags);
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  return ran.document();
}

TEST(ProfileCommand, MeasuresEachDistinctNodeAndTheSum) {
  const Cache cache;
  const Json profile = document("profile", {"--repeats", "3"});
  EXPECT_EQ(profile["model"], "mlp");
  EXPECT_GE(profile["steps"], 1);
  EXPECT_LE(profile["steps"], 3);
  EXPECT_EQ(profile["nodes"].size(), profile["distinct_nodes"]);
  EXPECT_GT(profile["nodes"].size(), 5U);
  std::int64_t sum = 0;
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  for (const Json& node : profile["nodes"]) {
    const auto all = node["ns"].get<std::int64_t>() * node["nodes"].get<std::int64_t>();
    EXPECT_LE(all, last) << "the most expensive first";
    // Each step runs every node once.
    EXPECT_EQ(node["runs"], node["nodes"].get<int>() * profile["steps"].get<int>());
    last = all;
    sum += all;
  }
  EXPECT_EQ(sum, profile["total_ns"]);
  EXPECT_GT(sum, 0);
}

TEST(ProfileCommand, PlansFindWhatItMeasured) {
  const Cache cache;
  const Json before = document("plan", {});
  EXPECT_EQ(before["costs"], "analytic");
  EXPECT_EQ(before["costs_file"], nullptr);
  EXPECT_EQ(before["cost_source"], "analytic");
  const Json profile = document("profile", {"--repeats", "2"});
  EXPECT_THAT(profile["cache_file"].get<std::string>(), StartsWith(cache.folder().path().string()));
  for (const Json& after : {document("plan", {}), document("sweep", {"--budgets", "2"})}) {
    EXPECT_EQ(after["costs"], "measured") << after;
    EXPECT_EQ(after["costs_file"], profile["cache_file"]) << after;
    EXPECT_EQ(after["costs_date"].get<std::string>().size(), 10U) << after;
    EXPECT_EQ(after["keep_all_cost_ns"], profile["total_ns"]) << after;
  }
  // The same flags, the same plan; and the estimate whenever it is asked for.
  Json twice = document("plan", {"--budget", "floor"});
  Json again = document("plan", {"--budget", "floor"});
  for (Json* plan : {&twice, &again}) plan->erase("plan_ms");
  EXPECT_EQ(twice, again);
  EXPECT_EQ(document("plan", {"--costs", "analytic"})["keep_all_cost_ns"],
            before["keep_all_cost_ns"]);
}

TEST(ProfileCommand, OneUnknownNodeMakesAllCostsAnalytic) {
  const Cache cache;
  (void)document("profile", {"--repeats", "1"});
  const Json adam = document("plan", {"--optimizer", "adam"});
  EXPECT_EQ(adam["costs"], "analytic");
  EXPECT_EQ(document("plan", {"--lr", "0.7", "--weight-decay", "0.1"})["costs"], "measured")
      << "rates take no time";
}

TEST(ProfileCommand, TrainingDoesNotDependOnCosts) {
  const Cache cache;
  const std::vector<std::string> run = {"--steps", "3", "--budget", "80%"};
  const Json analytic = document("train", run);
  EXPECT_EQ(analytic["plan"]["costs"], "analytic");
  (void)document("profile", {"--repeats", "1"});
  const Json measured = document("train", run);
  EXPECT_EQ(measured["plan"]["costs"], "measured");
  EXPECT_EQ(measured["state_hash"], analytic["state_hash"]);
  EXPECT_EQ(measured["losses"], analytic["losses"]);
  EXPECT_EQ(measured["predicted_ms_per_step"].get<double>(),
            measured["plan"]["cost_ns"].get<double>() * 1e-6);
  EXPECT_GE(measured["data_ms_per_step"].get<double>(), 0.0);
}

TEST(ProfileCommand, FilesServeWithoutACache) {
  const TempFolder folder;
  const std::string file = (folder / "costs.json").string();
  std::string total;
  {
    const Cache cache;
    total = document("profile", {"--repeats", "1", "--out", file})["total_ns"].dump();
  }
  const Json plan = document("plan", {"--costs", file});
  EXPECT_EQ(plan["costs"], "measured");
  EXPECT_EQ(plan["costs_file"], file);
  EXPECT_EQ(plan["keep_all_cost_ns"].dump(), total);
  // Costs of another model: some nodes are known, and the rest is said to be estimated.
  const Ran other = run_tiny("plan", {"--costs", file, "--optimizer", "adam"});
  EXPECT_EQ(other.code, 0);
  EXPECT_THAT(other.err, HasSubstr("lacks"));
  EXPECT_THAT(other.document()["cost_source"].get<std::string>(), HasSubstr("nodes analytic"));
}

TEST(ProfileCommand, WrittenCostsChangeThePlannedTime) {
  const TempFolder folder;
  const std::string file = (folder / "costs.json").string();
  {
    const Cache cache;
    (void)document("profile", {"--repeats", "1", "--out", file});
  }
  runtime::CostTable table = runtime::load_costs(file);
  for (auto& [key, cost] : table.nodes) cost = {.ns = 1000, .measured_at = 86'400};
  runtime::save_costs(file, table);
  const Json plan = document("plan", {"--costs", file});
  EXPECT_EQ(plan["keep_all_cost_ns"], 1000 * plan["nodes"].get<std::int64_t>());
  EXPECT_EQ(plan["costs_date"], "1970-01-02");
}

TEST(ProfileCommand, DamagedAndForeignTablesAreSaidAndNeverFatal) {
  const Cache cache;
  const std::string file = document("profile", {"--repeats", "1"})["cache_file"];
  write_file(file, R"({"format": 2, "device": "x")");
  const Ran plan = run_tiny("plan", {});
  EXPECT_EQ(plan.code, 0);
  EXPECT_EQ(plan.document()["costs"], "analytic");
  EXPECT_THAT(plan.err, HasSubstr(file));
  EXPECT_THAT(plan.err, HasSubstr("reprise profile"));
  const Ran named = run_tiny("plan", {"--costs", file});
  EXPECT_EQ(named.code, 2);
  EXPECT_THAT(named.error_message(), HasSubstr(file));
  const Ran renewed = run_tiny("profile", {"--repeats", "1"});
  EXPECT_EQ(renewed.code, 0);
  EXPECT_THAT(renewed.err, HasSubstr("replaced"));
  EXPECT_EQ(document("plan", {})["costs"], "measured");

  runtime::CostTable table = runtime::load_costs(file);
  table.device = "another box";
  runtime::save_costs(file, table);
  EXPECT_EQ(document("plan", {})["costs"], "analytic");
  const Ran foreign = run_tiny("plan", {"--costs", file});
  EXPECT_EQ(foreign.document()["costs"], "measured");
  EXPECT_THAT(foreign.err, HasSubstr("another box"));
}

TEST(ProfileCommand, ThreadsHaveCostsOfTheirOwn) {
  const Cache cache;
  (void)document("profile", {"--repeats", "1"});
  std::vector<std::string> args = with({"plan", "--json"}, kTiny);
  args.back() = "2";  // --threads
  EXPECT_EQ(run_cli(args).document()["costs"], "analytic");
}

TEST(ProfileCommand, RefusesToMeasureWhatItCannotKeep) {
  const char* set = std::getenv("HOME");
  const std::string home = set == nullptr ? "" : set;
  setenv("HOME", "", 1);
  setenv("XDG_CACHE_HOME", "", 1);
  const Ran ran = run_tiny("profile", {});
  setenv("HOME", home.c_str(), 1);
  setenv("XDG_CACHE_HOME", "/nonexistent/reprise-tests", 1);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error_message(), HasSubstr("--out FILE"));
}

TEST(ProfileCommand, SaysItInWordsAndIsQuietWithoutATerminal) {
  const Cache cache;
  const Ran ran = run_cli(with(with({"profile"}, kTiny), {"--repeats", "1", "--rows", "16"}));
  EXPECT_EQ(ran.code, 0);
  for (const char* word : {"share", "matmul", "us", "a step, over", "more; --rows", "kept in"}) {
    EXPECT_THAT(ran.out, HasSubstr(word)) << ran.out;
  }
  EXPECT_EQ(ran.err.find('\r'), std::string::npos);
  const Ran plan = run_cli(with({"plan"}, kTiny));
  EXPECT_THAT(plan.out, HasSubstr(cache.folder().path().string()));
  const Ran train = run_cli(with(with({"train"}, kTiny), {"--steps", "2"}));
  EXPECT_THAT(train.out, HasSubstr("planned "));
  EXPECT_THAT(train.out, HasSubstr("measured "));
}

}  // namespace
}  // namespace reprise::cli
