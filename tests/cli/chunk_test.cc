// --chunk auto on the command line.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::vector<std::string> kTinyLstm = {
    "--model",      "lstm", "--batch",   "64", "--hidden", "8",    "--layers",  "1",
    "--vocabulary", "8",    "--seq-len", "16", "--chunk",  "auto", "--threads", "1"};

TEST(ChunkFlag, AutoIsANumberInThePlan) {
  const Ran ran = run_cli(with({"plan", "--json", "--budget", "60%"}, kTinyLstm));
  ASSERT_EQ(ran.code, 0) << ran.out;
  const Json document = ran.document();
  const auto chunk = document.at("chunk").get<std::int64_t>();
  EXPECT_EQ(16 % chunk, 0);
  EXPECT_LE(document.at("peak_bytes"), document.at("budget_bytes"));
  EXPECT_THAT(ran.err, HasSubstr("chunk " + std::to_string(chunk) + ": step of "));
}

TEST(ChunkFlag, OtherModelsHaveNoChunk) {
  const Ran fine = run_cli(with({"plan", "--json"}, kTiny));
  ASSERT_EQ(fine.code, 0);
  EXPECT_TRUE(fine.document().at("chunk").is_null());
  const Ran ran = run_cli(with({"plan", "--json", "--chunk", "auto"}, kTiny));
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error_message(), HasSubstr("'mlp' has no chunks"));
}

TEST(ChunkFlag, AResumedRunTakesTheChunkOfItsSnapshot) {
  const TempFolder folder;
  const std::string save = (folder.path() / "run").string();
  const std::vector<std::string> train = with({"train", "--json", "--no-eval"}, kTinyLstm);
  const Ran first = run_cli(with(train, {"--budget", "50%", "--steps", "2", "--save", save}));
  ASSERT_EQ(first.code, 0) << first.out << first.err;
  const Json chunk = first.document().at("plan").at("chunk");
  EXPECT_GT(chunk, 0);
  const Ran second = run_cli(with(train, {"--steps", "3", "--resume", save}));
  ASSERT_EQ(second.code, 0) << second.out << second.err;
  EXPECT_EQ(second.document().at("plan").at("chunk"), chunk);
  EXPECT_EQ(second.document().at("resumed_from"), 2);
}

TEST(ChunkFlag, ASweepTakesTheBestLengthAtEachBudget) {
  const Ran ran =
      run_cli(with({"sweep", "--json", "--budgets", "3", "--planners", "segments"}, kTinyLstm));
  ASSERT_EQ(ran.code, 0) << ran.out;
  const Json document = ran.document();
  ASSERT_EQ(document.at("points").size(), 3U);
  for (const Json& point : document.at("points")) {
    if (point.at("feasible").get<bool>()) {
      EXPECT_GT(point.at("chunk"), 0);
    }
  }
}

}  // namespace
}  // namespace reprise::cli
