// How a training run ends other than at its last step: divergence, signals, and what its JSON says.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "cli/command.h"

#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
namespace fs = std::filesystem;

Ran train(const std::vector<std::string>& flags, const RunOptions& options = {}) {
  return run_cli(with(with({"train", "--json"}, kTiny), flags), options);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A rate of 1e30 spoils the parameters in the first step: the loss of the second is not finite.
TEST(RunEnd, TheFirstLossThatIsNotFiniteEndsTheRunAndNamesStepLossAndRate) {
  const Ran ran = train({"--steps", "12", "--lr", "1e30"});
  EXPECT_EQ(ran.code, kFailure);
  const Json error = ran.document().at("error");
  EXPECT_EQ(error.at("kind"), "diverged");
  EXPECT_THAT(ran.error_message(), HasSubstr("the loss of step 2 of 12 is "));
  EXPECT_THAT(ran.error_message(), HasSubstr("learning rate 1e+30"));
  EXPECT_THAT(ran.error_message(), HasSubstr("use a smaller --lr"));
}

// The state after step 1 is finite, however large, and saved; step 2 ends the run.
TEST(RunEnd, ADivergedStateIsNotSavedAndEarlierSnapshotsStayAndAreNamed) {
  const TempFolder folder;
  const std::string save = (folder / "run").string();
  const Ran ran = train({"--steps", "12", "--lr", "1e30", "--save", save, "--save-every", "1"});
  EXPECT_EQ(ran.code, kFailure);
  EXPECT_THAT(ran.error_message(), HasSubstr("nothing of this state was saved"));
  EXPECT_THAT(ran.error_message(), HasSubstr("are kept: " + save + "/snapshot-1.safetensors"));
  EXPECT_THAT(names_in(save),
              ElementsAre("reprise.lock", "snapshot-1.safetensors", "weights.safetensors"));
}

TEST(RunEnd, AStateThatIsNotFiniteIsADivergenceAlsoAfterTheLastStep) {
  const TempFolder folder;
  const std::string save = (folder / "run").string();
  // One step, whose loss is fine; weight decay of 1e30 at a rate of 1e30 makes infinities of it.
  const Ran ran = train({"--steps", "1", "--lr", "1e30", "--weight-decay", "1e30", "--save", save});
  EXPECT_EQ(ran.code, kFailure);
  EXPECT_EQ(ran.document().at("error").at("kind"), "diverged");
  EXPECT_THAT(ran.error_message(), HasSubstr("after step 1 of 1"));
  EXPECT_THAT(names_in(save), ElementsAre("reprise.lock"));
}

TEST(RunEnd, AStoppedRunSaysSoInItsDocument) {
  const std::atomic<bool> stop{true};
  const Json stopped = train({"--steps", "9"}, {.stop = &stop}).document();
  EXPECT_EQ(stopped.at("stopped_early"), true);
  EXPECT_THAT(stopped.at("warnings").dump(), HasSubstr("stopped early, after step 0 of 9"));
  const Json whole = train({"--steps", "2"}).document();
  EXPECT_EQ(whole.at("stopped_early"), false);
  EXPECT_THAT(whole.at("warnings").dump(), Not(HasSubstr("stopped early")));
}

// A script's background job starts with SIGINT ignored.
TEST(RunEnd, AnInterruptEndsAProgramThatWasStartedWithInterruptsIgnored) {
  const TempFolder folder;
  const std::string pipe = (folder / "plan").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGINT, SIG_IGN);
    execl(REPRISE_PROGRAM, REPRISE_PROGRAM, "show", pipe.c_str(), nullptr);
    _exit(127);
  }
  ASSERT_GT(child, 0);
  // It reads when this end can be opened, and then waits for a text that never comes.
  int writer = -1;
  for (int tries = 0; writer < 0 && tries < 6000; ++tries) {
    writer = open(pipe.c_str(), O_WRONLY | O_NONBLOCK);
    if (writer < 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GE(writer, 0);
  kill(child, SIGINT);
  int status = 0;
  for (int tries = 0; tries < 6000 && waitpid(child, &status, WNOHANG) == 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(child, SIGKILL);
  close(writer);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

// Where signals begin to be caught: what had been said by then, and how often.
const std::ostringstream* listened_to = nullptr;
std::vector<std::string> said_before;
void note_catch() {
  said_before.push_back(listened_to->str());
}

int run_and_listen(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  listened_to = &err;
  said_before.clear();
  return run(args, out, err, {.before_stoppable = note_catch});
}

TEST(RunEnd, SignalsEndTheProgramUntilThePlanStands) {
  // The budget is refused by the planner, so training never begins.
  EXPECT_EQ(run_and_listen(with(with({"train"}, kTiny), {"--steps", "1", "--budget", "1"})),
            kInfeasible);
  EXPECT_TRUE(said_before.empty());
  EXPECT_EQ(run_and_listen(with(with({"train"}, kTiny), {"--steps", "1"})), kOk);
  ASSERT_EQ(said_before.size(), 1U);
  EXPECT_THAT(said_before.front(), Not(HasSubstr("step 1")));
}

TEST(RunEnd, AStoppedSweepHasThePointsItMadeAndSaysSo) {
  const std::atomic<bool> stop{true};
  const std::vector<std::string> args = with(with({"sweep", "--json"}, kTiny), {"--budgets", "3"});
  const Json stopped = run_cli(args, {.stop = &stop}).document();
  EXPECT_EQ(stopped.at("points").size(), 1U);
  EXPECT_EQ(stopped.at("stopped_early"), true);
  EXPECT_THAT(stopped.at("warnings").dump(), HasSubstr("after 1 of 3 points"));
  const Json whole = run_cli(args).document();
  EXPECT_EQ(whole.at("points").size(), 3U);
  EXPECT_EQ(whole.at("stopped_early"), false);
}

}  // namespace
}  // namespace reprise::cli
