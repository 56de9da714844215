// Training as processes of their own, through `reprise launch`: it works, and whatever ends a rank
// ends all, soon, with its name.

#include <csignal>
#include <unistd.h>

#include "cli/command.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "runtime/comm/gloo_communicator.h"
#include "runtime/comm/launcher.h"
#include "runtime/comm/socket.h"
#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using namespace std::chrono_literals;
using runtime::comm::Clock;
using ::testing::HasSubstr;

class RanksAsProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      (void)runtime::comm::gloo_version();
    } catch (const base::Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

std::vector<std::string> train_flags(const std::string& steps) {
  return with(
      {"train", "--costs", "analytic", "--no-eval", "--planner", "keep_all", "--steps", steps},
      kTiny);
}

TEST_F(RanksAsProcesses, TrainAsOneRankDoes) {
  const Ran alone = run_cli(with(train_flags("8"), {"--json"}));
  ASSERT_EQ(alone.code, 0) << alone.err;
  for (const char* ranks : {"2", "3"}) {
    const Ran ran = run_cli(with({"launch", "-n", ranks, "--first-plain", "--", REPRISE_PROGRAM},
                                 with(train_flags("8"), {"--json"})));
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.document()["world_size"], std::stoi(ranks));
    const auto losses = ran.document()["losses"], wanted = alone.document()["losses"];
    ASSERT_EQ(losses.size(), wanted.size());
    for (std::size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i].get<double>(), wanted[i].get<double>(), 1e-5 * wanted[i].get<double>());
    EXPECT_THAT(ran.err, HasSubstr(fmt::format("rank 0 of {} is at 127.0.0.1", ranks)));
  }
}

// A run that would take for ever; `act` gets the process id of `culprit` once all are training.
struct Ended {
  runtime::comm::LaunchResult result;
  std::string error;
  Clock::duration after{};
};

// A time-out that other programs on the machine could make true is only for the test that needs it.
Ended end_a_rank(int ranks, int culprit, const std::function<void(pid_t)>& act,
                 const std::string& timeout_seconds = "120") {
  std::string command = "echo pid $$ >&2; exec " REPRISE_PROGRAM;
  for (const std::string& word :
       with(train_flags("100000000"), {"--comm-timeout", timeout_seconds}))
    command += " " + word;
  runtime::comm::LaunchOptions options;
  options.command = {"sh", "-c", command};
  options.ranks = ranks;
  options.threads = 1;
  Ended ended;
  pid_t pid = 0;
  bool acted = false;
  Clock::time_point begin;
  options.error = [&](std::string_view line) {
    ended.error += line;
    const std::string mark = fmt::format("[rank {}] pid ", culprit);
    if (line.starts_with(mark)) pid = std::stoi(std::string(line.substr(mark.size())));
    // Rank 0 says so when all have joined, have the same plan and begin.
    const bool begun = ended.error.find("planned before the first step") != std::string::npos;
    if (acted || pid == 0 || !begun) return;
    acted = true;
    std::this_thread::sleep_for(150ms);
    begin = Clock::now();
    act(pid);
  };
  ended.result = launch(options);
  ended.after = Clock::now() - begin;
  EXPECT_TRUE(acted) << ended.error;
  return ended;
}

// C39, C47: kill -9 on each of the ranks, the one that hosts the store included.
TEST_F(RanksAsProcesses, AKilledRankEndsAllAndIsNamed) {
  for (int culprit = 0; culprit < 3; ++culprit) {
    const Ended ended = end_a_rank(3, culprit, [](pid_t pid) { ::kill(pid, SIGKILL); });
    ASSERT_TRUE(ended.result.first.has_value());
    EXPECT_EQ(ended.result.first->rank, culprit) << ended.error;
    EXPECT_EQ(ended.result.exit_code(), 128 + SIGKILL);
    EXPECT_LT(ended.after, 20s);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == culprit) continue;
      EXPECT_EQ(ended.result.ends[static_cast<std::size_t>(rank)].code, kOtherRankFailed)
          << ended.error;
    }
    EXPECT_THAT(ended.error,
                HasSubstr(fmt::format("rank {} failed first: its process ended", culprit)));
  }
}

TEST_F(RanksAsProcesses, AStoppedRankEndsAllWithinTheTimeOutAndIsNamed) {
  for (int culprit = 0; culprit < 2; ++culprit) {
    const Ended ended = end_a_rank(
        2, culprit, [](pid_t pid) { ::kill(pid, SIGSTOP); }, "6");
    ASSERT_TRUE(ended.result.first.has_value());
    EXPECT_EQ(ended.result.first->rank, culprit) << ended.error;
    EXPECT_NE(ended.result.exit_code(), 0);
    EXPECT_LT(ended.after, 40s);
    EXPECT_THAT(ended.error, HasSubstr(fmt::format("rank {} failed first: not heard of", culprit)));
  }
}

TEST_F(RanksAsProcesses, ASignalToOneEndsAllInPeaceAfterTheSameStep) {
  const Ended ended = end_a_rank(2, 1, [](pid_t pid) { ::kill(pid, SIGTERM); });
  EXPECT_EQ(ended.result.exit_code(), 0) << ended.error;
}

}  // namespace
}  // namespace reprise::cli
