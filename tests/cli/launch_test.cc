// reprise launch: its flags, what it says, and its exit codes.

#include "cli/command.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;

TEST(Launch, PassesOutputOnBehindNames) {
  const Ran ran = run_cli({"launch", "-n", "2", "--", "sh", "-c", "echo $RANK of $WORLD_SIZE"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("[rank 0] 0 of 2\n"));
  EXPECT_THAT(ran.out, HasSubstr("[rank 1] 1 of 2\n"));
  EXPECT_THAT(ran.err, HasSubstr("launch: 2 ranks of "));
}

TEST(Launch, NamesTheRankThatFailedFirst) {
  const Ran ran = run_cli({"launch", "-n", "2", "--json", "--", "sh", "-c", "exit $((RANK * 9))"});
  EXPECT_EQ(ran.code, 9);
  EXPECT_EQ(ran.document()["failed_first"]["rank"], 1);
  EXPECT_EQ(ran.document()["failed_first"]["exit_code"], 9);
  EXPECT_EQ(ran.document()["ranks"].size(), 2u);
  EXPECT_THAT(ran.err, HasSubstr("rank 1 exited with code 9; it failed first"));
}

TEST(Launch, FlagsBehindTheDashesAreTheCommands) {
  const Ran ran = run_cli({"launch", "--first-plain", "--", "echo", "--json", "-n", "--help"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "--json -n --help\n");
}

TEST(Launch, RefusesWhatMakesNoSense) {
  EXPECT_EQ(run_cli({"launch", "-n", "0", "--", "true"}).code, kUsage);
  EXPECT_EQ(run_cli({"launch", "-n", "2"}).code, kUsage);
  EXPECT_EQ(run_cli({"launch", "--nnodes", "2", "--", "true"}).code, kUsage);
  EXPECT_EQ(run_cli({"launch", "--master-port", "70000", "--", "true"}).code, kUsage);
}

}  // namespace
}  // namespace reprise::cli
