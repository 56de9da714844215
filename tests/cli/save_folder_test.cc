// The folder of --save: one run at a time, other runs' snapshots, damaged ones, refusals that come
// before planning.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/command.h"

#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

Ran train(const std::vector<std::string>& flags) {
  return run_cli(with(with({"train", "--json"}, kTiny), flags));
}

std::string warnings_of(const Ran& ran) {
  EXPECT_EQ(ran.code, kOk) << ran.out << ran.err;
  return ran.document().at("warnings").dump();
}

TEST(SaveFolder, SnapshotsOfAnotherRunAreAWarningThatNamesTheNewest) {
  const TempFolder folder;
  const std::string save = (folder / "run").string();
  EXPECT_THAT(warnings_of(train({"--steps", "4", "--save", save})), Not(HasSubstr("snapshot")));
  const Ran second = train({"--steps", "2", "--save", save});
  for (const std::string& said : {warnings_of(second), second.err}) {
    EXPECT_THAT(said, HasSubstr(save + "/snapshot-4.safetensors"));
    EXPECT_THAT(said, HasSubstr("--resume " + save + " takes the newest"));
  }
  // Going on with the newest one is the same run; with the older one it is not.
  EXPECT_THAT(warnings_of(train({"--steps", "5", "--save", save, "--resume", save})),
              Not(HasSubstr("another run")));
  EXPECT_THAT(warnings_of(train(
                  {"--steps", "6", "--save", save, "--resume", save + "/snapshot-4.safetensors"})),
              HasSubstr("snapshot-5.safetensors"));
}

TEST(SaveFolder, ASecondRunIntoTheSameFolderIsRefusedWhileTheFirstHoldsIt) {
  const TempFolder folder;
  const std::string save = (folder / "run").string();
  ASSERT_EQ(train({"--steps", "1", "--save", save}).code, kOk);
  const int lock = open((save + "/reprise.lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(lock, 0);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  const Ran second = train({"--steps", "1", "--save", save});
  EXPECT_EQ(second.code, kUsage);
  EXPECT_THAT(second.error_message(), HasSubstr("another run is saving there"));
  EXPECT_THAT(second.error_message(), HasSubstr(save));
  close(lock);
  EXPECT_EQ(train({"--steps", "1", "--save", save}).code, kOk);
}

// A run that got as far as its plan says so on standard error.
TEST(SaveFolder, RefusalsComeBeforePlanning) {
  const TempFolder folder;
  write_file(folder / "file", "x");
  const Ran no_folder = train({"--steps", "1", "--save", (folder / "file/run").string()});
  EXPECT_EQ(no_folder.code, kUsage);
  EXPECT_THAT(no_folder.error_message(), HasSubstr("cannot make the folder"));
  EXPECT_THAT(no_folder.err, Not(HasSubstr("planned")));
  const std::string save = (folder / "run").string();
  ASSERT_EQ(train({"--steps", "2", "--save", save}).code, kOk);
  // The planner would refuse the budget of one byte with exit code 3.
  const auto refusal = [&](const std::vector<std::string>& flags) {
    const Ran ran = train(with({"--resume", save, "--budget", "1"}, flags));
    EXPECT_EQ(ran.code, kUsage);
    return ran.error_message();
  };
  EXPECT_THAT(refusal({"--steps", "2"}), HasSubstr("the snapshot is at step 2"));
  EXPECT_THAT(refusal({"--steps", "4", "--seed", "7"}), HasSubstr("seed '1', now '7'"));
  EXPECT_THAT(refusal({"--steps", "4", "--optimizer", "adam"}),
              AllOf(HasSubstr("optimizer 'sgd "), HasSubstr("now 'adam ")));
}

TEST(SaveFolder, ADamagedNewestSnapshotNamesTheOlderOneThatCanBeRead) {
  const TempFolder folder;
  const std::string save = (folder / "run").string();
  ASSERT_EQ(train({"--steps", "2", "--save", save, "--save-every", "1"}).code, kOk);
  const fs::path newest = folder / "run/snapshot-2.safetensors";
  write_file(newest, read_file(newest).substr(0, 100));
  const Ran ran = train({"--steps", "4", "--resume", save});
  EXPECT_EQ(ran.code, kUsage);
  EXPECT_THAT(ran.error_message(), HasSubstr(newest.string()));
  EXPECT_THAT(ran.error_message(), HasSubstr("--resume " + save + "/snapshot-1.safetensors"));
  EXPECT_EQ(train({"--steps", "4", "--resume", save + "/snapshot-1.safetensors"}).code, kOk);
}

}  // namespace
}  // namespace reprise::cli
