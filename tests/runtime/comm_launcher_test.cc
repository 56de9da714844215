// Processes that are started, watched and ended together. Ranks here are small shell scripts.

#include <csignal>
#include <fstream>
#include <map>
#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "runtime/comm/launcher.h"
#include "runtime/comm/socket.h"
#include "tests/runtime/temp_folder.h"

namespace reprise::runtime::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

struct Launched {
  LaunchResult result;
  std::vector<std::string> output, error;
};

LaunchOptions ranks(int count, const std::string& script) {
  LaunchOptions options;
  options.command = {"sh", "-c", script};
  options.ranks = count;
  options.settle = 200ms;
  options.grace = 300ms;
  return options;
}

Launched run(LaunchOptions options) {
  Launched launched;
  options.output = [&](std::string_view line) { launched.output.emplace_back(line); };
  options.error = [&](std::string_view line) { launched.error.emplace_back(line); };
  launched.result = launch(options);
  return launched;
}

TEST(Launches, EveryRankHearsItsPlaceAndIsHeardByName) {
  const auto got =
      run(ranks(3, "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR"));
  EXPECT_EQ(got.result.exit_code(), 0);
  EXPECT_FALSE(got.result.first.has_value());
  EXPECT_THAT(got.output,
              UnorderedElementsAre("[rank 0] 0/3 0/3 127.0.0.1\n", "[rank 1] 1/3 1/3 127.0.0.1\n",
                                   "[rank 2] 2/3 2/3 127.0.0.1\n"));
}

TEST(Launches, TheSecondNodesRanksComeAfterTheFirsts) {
  LaunchOptions options = ranks(2, "echo $RANK/$WORLD_SIZE $LOCAL_RANK $MASTER_ADDR:$MASTER_PORT");
  options.nodes = 3;
  options.node = 1;
  options.master_address = "10.0.0.1";
  options.master_port = 29500;
  EXPECT_THAT(run(options).output, UnorderedElementsAre("[rank 2] 2/6 0 10.0.0.1:29500\n",
                                                        "[rank 3] 3/6 1 10.0.0.1:29500\n"));
}

TEST(Launches, OutputIsPassedOnByWholeLines) {
  const auto got = run(ranks(1, "printf one; printf ' line\\n\\nlast'; echo oops >&2"));
  EXPECT_THAT(got.output,
              ::testing::ElementsAre("[rank 0] one line\n", "[rank 0] \n", "[rank 0] last\n"));
  EXPECT_THAT(got.error, ::testing::ElementsAre("[rank 0] oops\n"));
}

TEST(Launches, MuchOutputIsNotLost) {
  const auto got = run(ranks(2, "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"));
  EXPECT_EQ(got.output.size(), 40000u);
}

TEST(Launches, RankZeroMayBePlain) {
  LaunchOptions options = ranks(2, "echo '{}'");
  options.first_rank_plain = true;
  const auto got = run(options);
  EXPECT_THAT(got.output, ::testing::ElementsAre("{}\n"));
  EXPECT_THAT(got.error, ::testing::ElementsAre("[rank 1] {}\n"));
}

TEST(Launches, ARankThatFailsEndsTheOthersAndIsNamed) {
  const auto begin = Clock::now();
  const auto got = run(ranks(3, "[ $RANK = 1 ] && exit 7; sleep 60"));
  EXPECT_LT(Clock::now() - begin, 20s);
  ASSERT_TRUE(got.result.first.has_value());
  EXPECT_EQ(got.result.first->rank, 1);
  EXPECT_EQ(got.result.first->code, 7);
  EXPECT_EQ(got.result.exit_code(), 7);
  EXPECT_EQ(got.result.ends[0].signal, SIGTERM);
  EXPECT_TRUE(got.result.ends[2].killed);
}

TEST(Launches, ARankThatIsKilledIsNamedWithItsSignal) {
  const auto got = run(ranks(2, "[ $RANK = 1 ] && kill -9 $$; sleep 60"));
  EXPECT_EQ(got.result.exit_code(), 128 + SIGKILL);
  EXPECT_THAT(got.result.first->text(), HasSubstr("rank 1 was ended by signal 9"));
}

TEST(Launches, WhoeverIgnoresTheRequestIsKilled) {
  const auto begin = Clock::now();
  const auto got =
      run(ranks(2, "trap '' TERM; [ $RANK = 0 ] && exit 3; while :; do sleep 1; done"));
  EXPECT_LT(Clock::now() - begin, 20s);
  EXPECT_EQ(got.result.ends[1].signal, SIGKILL);
  EXPECT_EQ(got.result.exit_code(), 3);
}

// The one that ends because of another may well end before it.
TEST(Launches, TheCauseIsNamedAlthoughAConsequenceEndedFirst) {
  LaunchOptions options = ranks(3, "[ $RANK = 2 ] && { sleep 0.3; exit 9; }; exit 4");
  options.settle = 5s;
  const auto got = run(options);
  EXPECT_EQ(got.result.first->rank, 2);
  EXPECT_EQ(got.result.exit_code(), 9);
}

TEST(Launches, ARankThatStandsIsTheCauseOfTheOthersEnds) {
  const auto got = run(ranks(3, "[ $RANK = 1 ] && kill -STOP $$; exit 4"));
  EXPECT_EQ(got.result.first->rank, 1);
  EXPECT_THAT(got.result.first->text(), HasSubstr("stuck, or stopped"));
  EXPECT_NE(got.result.exit_code(), 0);
}

TEST(Launches, AStopIsPassedOnOnceAndWaitedFor) {
  std::atomic<bool> stop{false};
  LaunchOptions options = ranks(2,
                                "trap 'echo saving; sleep 0.7; echo saved; exit 0' TERM; echo "
                                "ready; while :; do sleep 0.05; done");
  options.stop = &stop;
  std::atomic<int> ready{0};
  std::vector<std::string> output;
  options.output = [&](std::string_view line) {
    output.emplace_back(line);
    if (line.ends_with("ready\n") && ++ready == 2) stop = true;
  };
  const LaunchResult result = launch(options);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.exit_code(), 0);  // although a save took longer than the grace of 300 ms
  EXPECT_THAT(output, ::testing::Contains("[rank 1] saved\n"));
}

TEST(Launches, WhatARankStartedGoesWithIt) {
  runtime::testing::TempFolder folder;
  const std::string file = (folder.path() / "pid").string();
  const auto got = run(ranks(1, "sleep 60 & echo $! > " + file + "; exit 0"));
  EXPECT_EQ(got.result.exit_code(), 0);
  pid_t helper = 0;
  std::ifstream(file) >> helper;
  ASSERT_GT(helper, 0);
  for (int i = 0; i < 100 && ::kill(helper, 0) == 0; ++i) std::this_thread::sleep_for(50ms);
  // Gone, or a zombie that waits for whoever reaps orphans here.
  std::string stat;
  std::getline(std::ifstream(fmt::format("/proc/{}/stat", helper)) >> std::ws, stat);
  EXPECT_TRUE(stat.empty() || stat.find(") Z") != std::string::npos) << stat;
}

TEST(Launches, NoRankOutlivesALauncherThatIsKilled) {
  runtime::testing::TempFolder folder;
  const std::string file = (folder.path() / "pid").string();
  const pid_t launcher = ::fork();
  ASSERT_GE(launcher, 0);
  if (launcher == 0) {
    (void)launch(
        ranks(1, "echo $$ > " + file + ".tmp; mv " + file + ".tmp " + file + "; exec sleep 60"));
    ::_exit(0);
  }
  pid_t rank = 0;
  for (int i = 0; i < 400 && rank == 0; ++i) {
    std::this_thread::sleep_for(25ms);
    std::ifstream(file) >> rank;
  }
  ASSERT_GT(rank, 0);
  ::kill(launcher, SIGKILL);
  ::waitpid(launcher, nullptr, 0);
  std::string stat = "?";
  for (int i = 0; i < 400; ++i) {
    stat.clear();
    std::ifstream in(fmt::format("/proc/{}/stat", rank));
    std::getline(in, stat);
    if (stat.empty() || stat.find(") Z") != std::string::npos) return;
    std::this_thread::sleep_for(25ms);
  }
  ADD_FAILURE() << "rank still there: " << stat;
}

TEST(Launches, AProgramThatIsNotThereIsNamed) {
  LaunchOptions options;
  options.command = {"no-such-program-here"};
  try {
    (void)launch(options);
    FAIL() << "launched";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'no-such-program-here' cannot be run: No such file"));
  }
}

TEST(Launches, ContradictionsAreRefused) {
  LaunchOptions options = ranks(2, "true");
  options.nodes = 2;
  EXPECT_THROW((void)launch(options), base::Error);  // without a master
  options.node = 2;
  options.master_address = "n1";
  options.master_port = 29500;
  EXPECT_THROW((void)launch(options), base::Error);  // no node 2 of 2
}

// C48: ranks x threads <= cores.
TEST(Launches, CoresAreDividedAmongRanks) {
  EXPECT_EQ(threads_per_rank(8, 1), 8);
  EXPECT_EQ(threads_per_rank(8, 3), 2);
  EXPECT_EQ(threads_per_rank(2, 4), 1);
  LaunchOptions options = ranks(1, "echo $OMP_NUM_THREADS");
  options.threads = 3;
  EXPECT_THAT(run(options).output, ::testing::ElementsAre("[rank 0] 3\n"));
}

}  // namespace
}  // namespace reprise::runtime::comm
