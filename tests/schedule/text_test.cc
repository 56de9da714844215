#include "schedule/text.h"

#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "graph/text.h"
#include "tests/schedule/random_step.h"

namespace reprise::schedule {
namespace {

using ::testing::HasSubstr;
using testing::TestLowering;

// The tiny step with h and y computed twice: the dump of docs/schedule_format.md.
PlannedStep tiny_plan() {
  testing::TinyStep step = testing::tiny_step();
  const std::vector<NodeId>& n = step.nodes;
  const TestLowering lowering(step.prepared);
  const Schedule schedule =
      lowering.lower(lowering.order({n[0], n[1], n[2], n[0], n[1], n[3], n[4], n[5], n[6]}));
  return {std::move(step.prepared), schedule, "segments(2)", 4096};
}

// What parsing says, or "accepted".
std::string refusal(const std::string& text) {
  try {
    (void)parse_planned_step(text, "a.plan");
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInput) << error.what();
    return error.what();
  }
  return "accepted";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ScheduleText, RoundTrips) {
  const PlannedStep plan = tiny_plan();
  EXPECT_EQ(parse_planned_step(print_planned_step(plan), "a.plan"), plan);
}

TEST(ScheduleText, RoundTripsRandomSteps) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    testing::RandomStep step(seed);
    const PlannedStep plan{step.prepared(), step.schedule(), "random \"quoted\" \\ \n \x7f", 1};
    ASSERT_EQ(parse_planned_step(print_planned_step(plan), "a.plan"), plan) << "seed " << seed;
  }
}

TEST(ScheduleText, RoundTripsNumbersExactly) {
  PlannedStep plan = tiny_plan();
  plan.budget_bytes = std::numeric_limits<Bytes>::max();
  plan.prepared.nodes[NodeId(0)].flops = 0.1 + 0.2;
  plan.prepared.nodes[NodeId(1)].flops = 1e300;
  plan.prepared.nodes[NodeId(2)].bytes_moved = 5e-324;
  plan.prepared.nodes[NodeId(3)].cost_ns = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(parse_planned_step(print_planned_step(plan), "a.plan"), plan);
}

TEST(ScheduleText, RoundTripsAlgorithms) {
  PlannedStep plan = tiny_plan();
  const NodeId h = plan.schedule.instructions[0].node;  // with in-place pairs and a workspace
  const NodeId y = plan.schedule.instructions[1].node;
  plan.prepared.nodes[h].others = {{"im2col \"wide\"", 4096, 40}, {"", 0, 900}};
  plan.prepared.nodes[y].others = {{"direct", 64, 7}};
  plan.schedule.instructions[0].algorithm = 2;
  plan.schedule.instructions[1].algorithm = 1;
  plan.schedule.instructions[1].workspace_bytes = 64;
  const std::string text = print_planned_step(plan);
  EXPECT_THAT(text,
              HasSubstr("inplace 0>0 1>0 or \"im2col \\\"wide\\\"\" cost 40 workspace 4096 or"));
  EXPECT_THAT(text, HasSubstr("run y reads 4 writes 5 algorithm 1 workspace 0 64\n"));
  EXPECT_EQ(parse_planned_step(text, "a.plan"), plan);
  EXPECT_THAT(refusal(replaced(text, "writes 5 algorithm 1", "writes 5 algorithm 2")),
              HasSubstr("expected an algorithm of the node in [1, 1], got \"2 workspace"));
  EXPECT_THAT(refusal(replaced(text, "\"direct\" cost", "\"direct\" price")),
              HasSubstr("expected 'cost'"));
}

TEST(ScheduleText, SkipsEmptyLinesAndComments) {
  const PlannedStep plan = tiny_plan();
  std::string text = replaced(print_planned_step(plan), "slots\n", "\n# offsets in bytes\nslots\n");
  EXPECT_EQ(parse_planned_step(text + "\n# the end\n", "a.plan"), plan);
}

TEST(ScheduleText, RefusesTruncationAtEveryByte) {
  const std::string text = print_planned_step(tiny_plan());
  for (std::size_t length = 0; length < text.size(); ++length) {
    ASSERT_THAT(refusal(text.substr(0, length)), ::testing::StartsWith("a.plan: ")) << length;
  }
}

TEST(ScheduleText, RefusesOrAcceptsFlippedBytesButNeverCrashes) {
  const std::string text = print_planned_step(tiny_plan());
  std::mt19937_64 random(7);
  int refused = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int i = 0; i < 4; ++i) {
      std::string broken = text;
      broken[at] = static_cast<char>(broken[at] ^ (1 << (random() % 8)));
      refused += refusal(broken) != "accepted" ? 1 : 0;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(ScheduleText, NamesSourceLineTextAndWhatWasExpected) {
  const std::string text = print_planned_step(tiny_plan());
  EXPECT_EQ(refusal("hello\n"), "a.plan: line 1: expected 'reprise-plan', got \"hello\"");
  EXPECT_EQ(refusal(""),
            "a.plan: line 1: expected reprise-plan and a newline, but the text was "
            "cut, got the end of the line");
  EXPECT_EQ(refusal("reprise-plan 2\n"),
            "a.plan: line 1: version 2 is unknown; this program reads 1");
  EXPECT_EQ(refusal(replaced(text, "arena ", "arena -")),
            "a.plan: line 4: expected an integer in [0, 2305843009213693952], got \"-512\"");
  EXPECT_THAT(refusal(replaced(text, "slot 1 ", "slot 2 ")),
              HasSubstr("expected the slot's number, counted from 0, in [1, 1], got \"2 w"));
  EXPECT_THAT(refusal(replaced(text, "slot 1 w ", "slot 1 v ")),
              HasSubstr("expected the name of a value of the graph, got \"v offset"));
  EXPECT_THAT(refusal(replaced(text, "run y reads", "run z reads")),
              HasSubstr("expected the name of a node of the graph"));
  EXPECT_THAT(refusal(replaced(text, "run y reads 4 writes", "run y reads 44 writes")),
              HasSubstr("expected a slot in [0, "));
  EXPECT_THAT(refusal(replaced(text, "value w bytes 64", "value w bytes 99999999999999999999")),
              HasSubstr("of at most 63 bits"));
  EXPECT_THAT(refusal(replaced(text, "flops ", "flops nan ")), HasSubstr("finite"));
  EXPECT_THAT(refusal(replaced(text, "inplace 0>0", "inplace 7>0")),
              HasSubstr("expected an input of the node in [0, 1], got \"7>0"));
  EXPECT_THAT(refusal(replaced(text, "value x bytes", "value w bytes")),
              HasSubstr("expected value x, as in the graph's order"));
  EXPECT_THAT(refusal(text + "more\n"), HasSubstr("expected nothing after 'end', got \"more\""));
}

TEST(ScheduleText, RefusesNamesOfNoBackendCostsOrLayout) {
  const std::string text = print_planned_step(tiny_plan());
  EXPECT_EQ(refusal(replaced(text, "backend \"reference\"", "backend \"referense\"")),
            "a.plan: line 5: there is no backend 'referense'; known: cpu, reference, cuda");
  EXPECT_EQ(refusal(replaced(text, "backend \"reference\"", "backend \"cpu\"")), "accepted");
  EXPECT_THAT(refusal(replaced(text, "costs \"analytic\"", "costs \"guessed\"")),
              HasSubstr("a.plan: line 6: costs 'guessed': expected analytic"));
  EXPECT_THAT(refusal(replaced(text, "costs \"analytic\"", "costs \"measured on \"")),
              HasSubstr("a.plan: line 6: costs"));
  EXPECT_EQ(refusal(replaced(text, "costs \"analytic\"", "costs \"measured on a box\"")),
            "accepted");
  // Six lines of header, 25 of the graph, the title and x: w is on line 34.
  const std::string w = "value w bytes 64 layout ";
  EXPECT_EQ(
      refusal(replaced(text, w + "\"plain\"", w + "\"plane\"")),
      "a.plan: line 34: 'plane' is no layout; expected plain, workspace or axes like aBcd16b");
  EXPECT_EQ(refusal(replaced(text, w + "\"plain\"", w + "\"ba\"")), "accepted");
}

TEST(ScheduleText, CountsLinesOfTheGraphFromTheTopOfTheFile) {
  const std::string text =
      replaced(print_planned_step(tiny_plan()), "value w parameter f32", "value w parameter f99");
  // Six lines of header, the graph's two, the values x and w.
  EXPECT_THAT(refusal(text), HasSubstr("a.plan: line 10: "));
}

// The first fenced block of the page that holds a plan.
std::string documented_plan() {
  std::ifstream file(std::string(REPRISE_TEST_DATA) + "/../../docs/schedule_format.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const std::size_t start = text.find("reprise-plan 1\n");
  if (start == std::string::npos) return "no plan in the page";
  return text.substr(start, text.find("```", start) - start);
}

TEST(ScheduleText, EqualsTheDumpOfItsDocument) {
  EXPECT_EQ(documented_plan(), print_planned_step(tiny_plan()));
}

}  // namespace
}  // namespace reprise::schedule
