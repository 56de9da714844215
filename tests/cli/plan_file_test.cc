// show, verify and map on plan files: good, cut short, tampered with, foreign.

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "schedule/text.h"
#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;

class PlanFile : public ::testing::Test {
 protected:
  PlanFile() {
    const Ran ran = run_cli(with(with({"plan"}, kTiny), {"--budget", "floor", "--out", path}));
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("wrote " + path));
    text = read_file(path);
  }

  // Writes the plan with `change` made to it.
  template <class F>
  void tamper(F&& change) {
    schedule::PlannedStep step = schedule::parse_planned_step(text, path);
    change(step);
    write_file(path, schedule::print_planned_step(step));
  }

  TempFolder folder;
  const std::string path = (folder / "tiny.plan").string();
  const std::string svg = (folder / "map.svg").string();
  std::string text;
};

TEST_F(PlanFile, VerifiesAndSaysHowMuch) {
  const Ran ran = run_cli({"verify", path});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("ok: "));
  EXPECT_THAT(ran.out, HasSubstr("instructions"));
  const auto document = run_cli({"verify", path, "--json"}).document();
  EXPECT_EQ(document["ok"], true);
  EXPECT_TRUE(document["violations"].empty());
}

TEST_F(PlanFile, BrokenRulesAreNamedAndFail) {
  tamper([](schedule::PlannedStep& step) { step.schedule.arena_bytes -= 64; });
  const Ran ran = run_cli({"verify", path});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("outside_arena"));
  EXPECT_THAT(ran.err, HasSubstr("violation"));
  const Ran json = run_cli({"verify", path, "--json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(json.document()["ok"], false);
  EXPECT_FALSE(json.document()["violations"].empty());
}

TEST_F(PlanFile, OneByteAboveItsBudgetIsFound) {
  tamper([](schedule::PlannedStep& step) { step.budget_bytes = step.schedule.arena_bytes - 1; });
  const Ran ran = run_cli({"verify", path});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("budget: the arena has"));
}

TEST_F(PlanFile, WhatCannotBeWrittenLeavesTheOldFile) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // the write fails instead
  const rlimit small{.rlim_cur = 4, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Ran ran = run_cli(with(with({"plan"}, kTiny), {"--out", path}));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr(path));
  EXPECT_EQ(read_file(path), text);
}

TEST_F(PlanFile, AMissingInstructionIsFound) {
  tamper([](schedule::PlannedStep& step) { step.schedule.instructions.pop_back(); });
  EXPECT_EQ(run_cli({"verify", path}).code, 1);
}

TEST_F(PlanFile, TheLimitHoldsBackTheRest) {
  tamper([](schedule::PlannedStep& step) { step.schedule.instructions.clear(); });
  const auto few = run_cli({"verify", path, "--limit", "2", "--json"}).document();
  EXPECT_EQ(few["violations"].size(), 2U);
}

TEST_F(PlanFile, ShowsFiguresAndInstructions) {
  const Ran ran = run_cli({"show", path});
  EXPECT_EQ(ran.code, 0);
  for (const char* word : {"mlp", "budget", "arena", "repeated runs", "peak at", "Instructions"}) {
    EXPECT_THAT(ran.out, HasSubstr(word));
  }
  const auto lines = [](const std::string& out) {
    return std::count(out.begin(), out.end(), '\n');
  };
  const Ran few = run_cli({"show", path, "--limit", "3"});
  const Ran all = run_cli({"show", path, "--all"});
  const auto document = run_cli({"show", path, "--json"}).document();
  EXPECT_EQ(lines(all.out) - lines(few.out),
            document["instructions"].get<std::int64_t>() - 3 - 1);  // less "... and N more"
  EXPECT_GT(document["recomputed_nodes"], 0);
  EXPECT_THAT(run_cli({"show", path, "--dot"}).out, HasSubstr("digraph"));
}

TEST_F(PlanFile, DrawsTheSameMapAsFromTheModel) {
  const Ran ran = run_cli({"map", path, "--out", svg});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const std::string drawn = read_file(svg);
  EXPECT_THAT(drawn, HasSubstr("<svg"));
  EXPECT_THAT(drawn, HasSubstr("</svg>"));

  const std::string other = (folder / "other.svg").string();
  const Ran planned =
      run_cli(with(with({"map", "--json"}, kTiny), {"--budget", "floor", "--out", other}));
  EXPECT_EQ(planned.code, 0);
  EXPECT_EQ(planned.document()["file"], other);
  EXPECT_THAT(read_file(other), HasSubstr("</svg>"));
}

TEST_F(PlanFile, MapsThatCannotBeWrittenFail) {
  const Ran itself = run_cli({"map", path, "--out", (folder / "." / "tiny.plan").string()});
  EXPECT_EQ(itself.code, 2) << itself.out;
  EXPECT_EQ(run_cli({"verify", path}).code, 0);  // the plan is still there
  const Ran ran = run_cli({"map", path, "--out", (folder / "no" / "such.svg").string()});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("such.svg"));
}

TEST_F(PlanFile, CutFilesAreRefusedWithFileAndLine) {
  // Cut at lines rather than bytes: a cut inside a number may leave another valid number.
  for (const double part : {0.0, 0.1, 0.5, 0.9, 0.99}) {
    const auto size = static_cast<std::size_t>(static_cast<double>(text.size()) * part);
    write_file(path, text.substr(0, size));
    for (const char* command : {"show", "verify"}) {
      const Ran ran = run_cli({command, path});
      EXPECT_EQ(ran.code, 2) << command << " at " << part;
      EXPECT_THAT(ran.err, HasSubstr(path)) << command << " at " << part;
    }
    EXPECT_EQ(run_cli({"map", path, "--out", svg}).code, 2) << part;
    EXPECT_FALSE(std::filesystem::exists(svg));
  }
}

TEST_F(PlanFile, ForeignFilesAreRefused) {
  for (const std::string& content :
       {std::string("hello\n"), std::string(1000, '\0'), std::string("\xff\xfe garbage")}) {
    write_file(path, content);
    const Ran ran = run_cli({"show", path, "--json"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.document()["error"]["kind"], "input");  // a document even for odd bytes
    EXPECT_THAT(ran.error_message(), HasSubstr(path));
  }
}

TEST_F(PlanFile, UnknownIdsAreRefusedNotFollowed) {
  // "run fc reads 0 1 2 ..." -> a slot that is not there.
  const std::size_t at = text.find(" reads ");
  ASSERT_NE(at, std::string::npos);
  std::string broken = text;
  broken.replace(at, 7, " reads 99999999 ");
  write_file(path, broken);
  for (const char* command : {"show", "verify"}) EXPECT_NE(run_cli({command, path}).code, 0);
  EXPECT_EQ(run_cli({"map", path, "--out", svg}).code, 2);
}

}  // namespace
}  // namespace reprise::cli
