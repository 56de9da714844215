#include "cli/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"

#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Run, HelpListsEveryCommandAndTheExitCodes) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"--help"}, {"-h"}, {"help"}}) {
    const Ran ran = run_cli(args);
    EXPECT_EQ(ran.code, 0);
    EXPECT_THAT(ran.err, IsEmpty());
    EXPECT_THAT(ran.out, HasSubstr("3 budget infeasible"));
    for (const Command& command : all_commands()) {
      EXPECT_THAT(ran.out, HasSubstr(std::string(command.name)));
      EXPECT_THAT(ran.out, HasSubstr(std::string(command.summary)));
    }
  }
}

TEST(Run, EachCommandExplainsItselfWithAnExample) {
  for (const Command& command : all_commands()) {
    const std::string name(command.name);
    const Ran ran = run_cli({name, "--help"});
    EXPECT_EQ(ran.code, 0) << name;
    EXPECT_THAT(ran.out, HasSubstr("Usage: reprise " + name)) << name;
    EXPECT_THAT(ran.out, HasSubstr("Example")) << name;
    EXPECT_THAT(ran.out, HasSubstr("--json")) << name;
    EXPECT_EQ(run_cli({"help", name}).out, ran.out) << name;
  }
}

TEST(Run, HelpFitsATerminal) {
  for (const Command& command : all_commands()) {
    std::istringstream lines(run_cli({std::string(command.name), "--help"}).out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST(Run, WithoutACommandTheOverviewGoesToStandardError) {
  const Ran ran = run_cli({});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.out, IsEmpty());
  EXPECT_THAT(ran.err, HasSubstr("Commands:"));
}

TEST(Run, UnknownCommandsAreNamedWithTheNearest) {
  const Ran ran = run_cli({"trian"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("unknown command 'trian' (did you mean train?)"));
  EXPECT_THAT(run_cli({"frobnicate"}).err, Not(HasSubstr("did you mean")));
  EXPECT_EQ(run_cli({"--json"}).code, 2);
}

TEST(Run, VersionIsTheProjects) {
  const Ran ran = run_cli({"--version"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "reprise " REPRISE_VERSION "\n");
}

TEST(Run, FailedOutputIsAFailure) {
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);  // a full disk, a closed pipe
  EXPECT_EQ(run({"--version"}, out, err), 1);
  EXPECT_THAT(err.str(), HasSubstr("standard output"));
}

TEST(Run, DoctorNamesDevicesMemoryAndVersions) {
  const Ran text = run_cli({"doctor"});
  EXPECT_EQ(text.code, 0);
  for (const char* word :
       {"processor", "memory", "cpu", "reference", "fashion-mnist", "auto", "nlohmann-json"}) {
    EXPECT_THAT(text.out, HasSubstr(word));
  }
  const nlohmann::json document = run_cli({"doctor", "--json"}).document();
  EXPECT_GT(document["memory_available_bytes"].get<std::int64_t>(), 0);
  EXPECT_GT(document["processor"]["cores"].get<int>(), 0);
  EXPECT_EQ(document["versions"]["reprise"], REPRISE_VERSION);
  bool reference = false;
  for (const auto& device : document["devices"]) {
    reference |= device["name"] == "reference" && device["available"] == true;
  }
  EXPECT_TRUE(reference);
}

}  // namespace
}  // namespace reprise::cli
