// solve: the documents of each form, budgets at and around the floor, exit codes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// docs/problem_format.md. Keeping h: f1 4+8=12, f2 4+8+8=20, loss in place 4+8+8=20, b2 (x, h, dy,
// dh, dw2) 4+8+8+8+2=30, b1 (x, dh, dw2, dw1, workspace) 4+8+2+2+1=17. Nothing takes less than b2.
// Costs: 3+3+1+6+3=16.
const char* const kTwoLayers = R"({"name": "two_layers",
 "tensors": [{"name": "x", "bytes": 4, "kind": "input"}, {"name": "h", "bytes": 8},
             {"name": "y", "bytes": 8}, {"name": "dy", "bytes": 8},
             {"name": "dw2", "bytes": 2, "kind": "output"}, {"name": "dh", "bytes": 8},
             {"name": "dw1", "bytes": 2, "kind": "output"}],
 "ops": [{"name": "f1", "inputs": [0], "outputs": [1], "cost": 3},
         {"name": "f2", "inputs": [1], "outputs": [2], "cost": 3},
         {"name": "loss", "inputs": [2], "outputs": [3], "cost": 1, "recomputable": false,
          "inplace": 0},
         {"name": "b2", "inputs": [3, 1], "outputs": [5, 4], "cost": 6, "recomputable": false},
         {"name": "b1", "inputs": [5, 0], "outputs": [6], "cost": 3, "recomputable": false,
          "workspace": 1}]})";

class SolveCommand : public ::testing::Test {
 protected:
  Ran solve(const std::string& problem, const std::vector<std::string>& flags) {
    write_file(folder_.path() / "problem.json", problem);
    return run_cli(with({"solve", (folder_.path() / "problem.json").string()}, flags));
  }
  TempFolder folder_;
};

TEST_F(SolveCommand, PlansAnOpGraph) {
  const Ran ran = solve(kTwoLayers, {"--budget", "30", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.out;
  const Json document = ran.document();
  EXPECT_EQ(document["feasible"], true);
  EXPECT_EQ(document["cost"], 16);
  EXPECT_EQ(document["peak"], 30);
  EXPECT_EQ(document["floor"], 30);
  EXPECT_EQ(document["lower_bound"], 16);
  EXPECT_EQ(document["optimal"], true);
  EXPECT_EQ(document["gap"], 0.0);
  EXPECT_EQ(document["schedule"],
            Json::parse(R"([["run",0],["run",1],["run",2],["run",3],["drop",3],["drop",1],
                            ["run",4],["drop",5]])"));
}

TEST_F(SolveCommand, BelowTheFloorItSaysWhatWouldDo) {
  const Ran ran = solve(kTwoLayers, {"--budget", "29", "--json"});
  EXPECT_EQ(ran.code, 3);
  const Json document = ran.document();
  EXPECT_EQ(document["feasible"], false);
  EXPECT_EQ(document["floor"], 30);
  EXPECT_EQ(document["error"]["kind"], "infeasible");
  EXPECT_EQ(document["error"]["floor_bytes"], 30);
  EXPECT_EQ(document["error"]["bound_by"], "b2");
  EXPECT_FALSE(document.contains("schedule"));
  EXPECT_THAT(solve(kTwoLayers, {"--budget", "29"}).err, HasSubstr("needs at least 30 B"));
}

TEST_F(SolveCommand, AnArenaGivesEachBufferItsPlace) {
  const Ran ran = solve(kTwoLayers, {"--arena", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.out;
  const Json document = ran.document();
  EXPECT_EQ(document["live_peak"], 30);
  EXPECT_GE(document["arena"], 30);
  // y and dy share one buffer; b1 books a byte: 7 tensors - 1 + 1.
  EXPECT_EQ(document["buffers"].size(), 7u);
  int shared = 0;
  for (const Json& buffer : document["buffers"])
    shared += buffer.value("tensors", Json()) == Json({2, 3});
  EXPECT_EQ(shared, 1);
}

TEST_F(SolveCommand, PicksOneOfTheChoicesOfEachOp) {
  // f makes y (4 bytes): 4 + 6 with the fast choice, 4 + 0 with the lean one.
  const std::string problem = R"({"tensors": [{"bytes": 4, "kind": "output"}],
      "ops": [{"inputs": [], "outputs": [0], "recomputable": false,
               "choices": [{"cost": 9}, {"workspace": 6, "cost": 2}]}]})";
  Json document = solve(problem, {"--json", "--budget", "10"}).document();
  EXPECT_EQ(document["choices"], Json::array({1}));
  EXPECT_EQ(document["cost"], 2);
  document = solve(problem, {"--json", "--budget", "9"}).document();
  EXPECT_EQ(document["choices"], Json::array({0}));
  EXPECT_EQ(document["cost"], 9);
  EXPECT_EQ(document["peak"], 4);
  EXPECT_EQ(document["floor"], 4);
  EXPECT_EQ(document["optimal"], true);
  EXPECT_FALSE(solve(kTwoLayers, {"--json"}).document().contains("choices"));
}

TEST_F(SolveCommand, WithoutJsonItReportsForPeople) {
  const Ran ran = solve(kTwoLayers, {"--budget", "floor"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("two_layers"));
  EXPECT_THAT(ran.out, HasSubstr("optimal: proven"));
}

TEST_F(SolveCommand, PacksBuffersAlone) {
  // [0,2) 3, [1,4) 2, [2,4) 3: two at a time, 5 bytes.
  const std::string buffers = R"({"buffers": [{"start": 0, "end": 2, "bytes": 3},
      {"start": 1, "end": 4, "bytes": 2}, {"start": 2, "end": 4, "bytes": 3}], "extra": 1})";
  const Ran ran = solve(buffers, {"--json"});
  ASSERT_EQ(ran.code, 0) << ran.out;
  EXPECT_EQ(ran.document()["arena"], 5);
  EXPECT_EQ(ran.document()["optimal"], true);
  EXPECT_EQ(ran.document()["offsets"].size(), 3u);
  EXPECT_THAT(ran.err, HasSubstr("extra"));
  EXPECT_EQ(solve(buffers, {"--budget", "5"}).code, 0);
  EXPECT_EQ(solve(buffers, {"--budget", "4", "--json"}).code, 3);
  EXPECT_EQ(solve(buffers, {"--planner", "dag"}).code, 2);
}

TEST_F(SolveCommand, WrongProblemsNameTheFileAndExitWithTwo) {
  const Ran ran = solve(R"({"tensors": [{"bytes": NaN}], "ops": []})", {"--json"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error_message(), HasSubstr("problem.json"));
  EXPECT_EQ(run_cli({"solve", "/no/such/file.json"}).code, 2);
  EXPECT_EQ(run_cli({"solve"}).code, 2);
}

TEST_F(SolveCommand, WrongFlagsExitWithTwo) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--budget", "0"},
                                                {"--budget", "-1"},
                                                {"--planner", "best"},
                                                {"--order", "any"},
                                                {"--seconds", "0"},
                                                {"--seconds", "nan"},
                                                {"--threads", "0"},
                                                {"--seed", "-1"}}) {
    EXPECT_EQ(solve(kTwoLayers, flags).code, 2) << flags[0] << " " << flags[1];
  }
}

}  // namespace
}  // namespace reprise::cli
