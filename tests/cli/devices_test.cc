// --devices: several devices of one process.

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> train_flags(const std::vector<std::string>& more) {
  return with(with({"train", "--costs", "analytic", "--no-eval", "--planner", "keep_all", "--steps",
                    "6", "--json"},
                   kTiny),
              more);
}

TEST(DevicesFlag, TrainsAsOneDeviceDoes) {
  const Ran alone = run_cli(train_flags({}));
  ASSERT_EQ(alone.code, 0) << alone.err;
  const Ran ran = run_cli(train_flags({"--devices", "cpu:3"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.document()["world_size"], 3);
  const auto losses = ran.document()["losses"], wanted = alone.document()["losses"];
  ASSERT_EQ(losses.size(), wanted.size());
  for (std::size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i].get<double>(), wanted[i].get<double>(), 1e-5 * wanted[i].get<double>());
}

// 1 item over 3 devices: two of them have none.
TEST(DevicesFlag, MayNameMoreDevicesThanTheBatchHasItems) {
  const Ran ran = run_cli({"train", "--model", "mlp", "--batch", "1", "--steps", "2", "--no-eval",
                           "--devices", "reference:3", "--json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
}

TEST(DevicesFlag, EveryMisuseIsAnErrorThatNamesTheFlag) {
  const auto refused = [](const std::vector<std::string>& more, const std::string& part) {
    const Ran ran = run_cli(with({"train", "--model", "mlp"}, more));
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("--devices"), HasSubstr(part)));
  };
  refused({"--devices", "cpu:0"}, "must lie in [1, 256]");
  refused({"--devices", "cpu:two"}, "'two' is no number");
  refused({"--devices", "tpu:2"}, "no device 'tpu'");
  refused({"--devices", "cuda:0,0"}, "GPU 0 comes twice");
  refused({"--devices", ""}, "expected LIST");
  refused({"--devices", "cpu:2", "--device", "reference"}, "--device reference");
}

TEST(DevicesFlag, IsRefusedInAProcessThatIsOneOfSeveralRanks) {
  const std::pair<const char*, const char*> variables[] = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  for (const auto& [name, value] : variables) setenv(name, value, 1);
  const Ran ran = run_cli({"train", "--model", "mlp", "--devices", "cpu:2"});
  for (const auto& [name, value] : variables) unsetenv(name);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("--devices cpu:2"), HasSubstr("rank 1 of 2")));
}

}  // namespace
}  // namespace reprise::cli
