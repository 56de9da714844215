// Problem files: what is read, and what is refused with the words that help.

#include "planner/problem_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"

namespace reprise::planner {
namespace {

using schedule::OpId;
using schedule::TensorId;
using schedule::TensorKind;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    (void)parse_problem(text);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}

// x > f > h > g > y, with one op replaced.
std::string graph(const std::string& f, const std::string& g = R"("inputs":[1],"outputs":[2])") {
  return R"({"tensors":[{"name":"x","bytes":4,"kind":"input"},{"name":"h","bytes":4},
            {"name":"y","bytes":4,"kind":"output"}],"ops":[{"name":"f","cost":1,)" +
         f + R"(},{"name":"g","cost":1,)" + g + "}]}";
}

TEST(ProblemFile, ReadsAnOpGraph) {
  const ProblemFile file = parse_problem(R"({"format":"reprise-problem","version":1,"name":"small",
      "tensors":[{"name":"x","bytes":4,"kind":"input"},{"bytes":8},
                 {"name":"y","bytes":8,"kind":"output"}],
      "ops":[{"name":"f","inputs":[0],"outputs":[1],"workspace":3,"cost":5},
             {"inputs":[1,0],"outputs":[2],"cost":7,"recomputable":false,"inplace":0}],
      "alignment":16,"colour":"red"})");
  EXPECT_EQ(file.name, "small");
  EXPECT_THAT(file.ignored, ElementsAre("colour"));
  const auto& read = std::get<OpGraphFile>(file.content);
  EXPECT_EQ(read.alignment, 16);
  const schedule::Problem& problem = read.problem;
  EXPECT_EQ(problem.tensors[TensorId(0u)].kind, TensorKind::kResident);
  EXPECT_EQ(problem.tensors[TensorId(1u)], (schedule::Tensor{"t1", 8, TensorKind::kTemp}));
  const schedule::Op& g = problem.ops[OpId(1u)];
  EXPECT_EQ(g.name, "op1");
  EXPECT_FALSE(g.recomputable);
  ASSERT_EQ(g.inplace.size(), 1u);
  EXPECT_TRUE(g.inplace[0].forced);
  EXPECT_EQ(problem.ops[OpId(0u)].workspace, 3);
}

TEST(ProblemFile, ReadsTheChoicesWorthHavingFastestFirst) {
  // Choice 0 is as lean as 2 and dearer; 1 is fastest.
  const ProblemFile file = parse_problem(R"({"tensors":[{"bytes":4,"kind":"output"},{"bytes":4}],
      "ops":[{"inputs":[],"outputs":[0],"choices":[{"workspace":2,"cost":9},
                 {"workspace":8,"cost":1,"name":"wide"},{"workspace":2,"cost":5},{"cost":7}]},
             {"inputs":[0],"outputs":[1],"cost":3}]})");
  EXPECT_THAT(file.ignored, ::testing::IsEmpty());
  const auto& read = std::get<OpGraphFile>(file.content);
  EXPECT_TRUE(read.offers_choices);
  const schedule::Op& op = read.problem.ops[OpId(0u)];
  EXPECT_EQ(op.algorithm(0), (schedule::Algorithm{8, 1}));
  EXPECT_THAT(op.leaner, ElementsAre(schedule::Algorithm{2, 5}, schedule::Algorithm{0, 7}));
  EXPECT_THAT(read.choices[OpId(0u)], ElementsAre(1, 2, 3));
  EXPECT_THAT(read.choices[OpId(1u)], ElementsAre(0));
}

TEST(ProblemFile, RefusesChoicesThatAreNone) {
  const auto with = [](const std::string& fields) {
    return refusal(R"({"tensors":[{"bytes":4}],"ops":[{"name":"f","inputs":[],"outputs":[0],)" +
                   fields + "}]}");
  };
  EXPECT_THAT(with(R"("choices":[])"), HasSubstr("ops[0] 'f': choices is empty"));
  EXPECT_THAT(with(R"("cost":1,"choices":[{"cost":1}])"),
              HasSubstr("ops[0] 'f': cost stands beside choices"));
  EXPECT_THAT(with(R"("workspace":1,"choices":[{"cost":1}])"),
              HasSubstr("workspace stands beside choices"));
  EXPECT_THAT(with(R"("choices":[{"cost":1},{"workspace":3}])"),
              AllOf(HasSubstr("ops[0] 'f': choices[1]"), HasSubstr("cost")));
  EXPECT_THAT(with(R"("choices":[{"cost":-1}])"), HasSubstr("choices[0]"));
  EXPECT_THAT(with(R"("choices":[7])"), HasSubstr("choices[0]"));
}

TEST(ProblemFile, AnOpThatMakesAnOutputRunsOnce) {
  const auto file =
      std::get<OpGraphFile>(parse_problem(graph(R"("inputs":[0],"outputs":[1])")).content);
  EXPECT_THAT(file.held_to_one_run, ElementsAre(OpId(1u)));
  EXPECT_TRUE(file.problem.ops[OpId(0u)].recomputable);
  EXPECT_FALSE(file.problem.ops[OpId(1u)].recomputable);
}

TEST(ProblemFile, ReadsAChain) {
  const auto file = std::get<ChainFile>(
      parse_problem(R"({"id":"c","chain":{"L":2,"a":[1,2,3],"b":[0,5,6],"g":[7,8,9],"uf":[10,11],
                       "ub":[12,13],"of":[14,15],"ob":[16,17],"ul":18,"ol":19}})")
          .content);
  EXPECT_EQ(file.chain.input, 1);
  EXPECT_EQ(file.chain.input_gradient, 7);
  EXPECT_EQ(file.chain.loss_cost, 18);
  EXPECT_EQ(file.chain.loss_workspace, 19);
  ASSERT_EQ(file.chain.stages.size(), 2u);
  const Stage last{.output = 3,
                   .output_gradient = 9,
                   .forward_cost = 11,
                   .forward_workspace = 15,
                   .options = {{11, 13, 6, 15, 17}}};
  EXPECT_EQ(file.chain.stages[1], last);
}

TEST(ProblemFile, ReadsAUniformChain) {
  const auto file = std::get<UniformChainFile>(
      parse_problem(R"({"steps":1000000,"a":1,"b":8,"g":2,"uf":3,"ub":4,"ol":5})").content);
  const UniformChain expected{.steps = 1'000'000,
                              .a = 1,
                              .b = 8,
                              .g = 2,
                              .uf = 3,
                              .ub = 4,
                              .of = 0,
                              .ob = 0,
                              .ul = 0,
                              .ol = 5};
  EXPECT_EQ(file.chain, expected);
}

TEST(ProblemFile, ReadsBuffers) {
  const auto file = std::get<BuffersFile>(
      parse_problem(R"({"buffers":[{"start":1,"end":3,"bytes":5}],"alignment":4})").content);
  ASSERT_EQ(file.buffers.size(), 1u);
  EXPECT_EQ(file.buffers[0].end, 3);
  EXPECT_EQ(file.alignment, 4);
}

TEST(ProblemFile, WholeNumbersMayBeWrittenAsReals) {
  const auto file = std::get<BuffersFile>(
      parse_problem(R"({"buffers":[{"start":0,"end":1.0,"bytes":1e3}]})").content);
  EXPECT_EQ(file.buffers[0].bytes, 1000);
}

TEST(ProblemFile, NamesTheOpsOfACycle) {
  // f reads y, which g makes of h, which f makes.
  EXPECT_THAT(refusal(graph(R"("inputs":[2],"outputs":[1])")),
              HasSubstr("'g' > 'f' > 'g' form a cycle"));
  EXPECT_THAT(refusal(graph(R"("inputs":[1],"outputs":[1])")), HasSubstr("'f' > 'f' form a cycle"));
}

TEST(ProblemFile, NamesAReaderBeforeItsProducer) {
  EXPECT_THAT(refusal(graph(R"("inputs":[2],"outputs":[1])", R"("inputs":[0],"outputs":[2])")),
              AllOf(HasSubstr("ops[0] 'f' reads 'y'"), HasSubstr("ops[1] 'g' makes it")));
}

struct Wrong {
  const char* name;
  std::string text;
  const char* words;
};

class WrongProblem : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongProblem, IsRefusedByName) {
  EXPECT_THAT(refusal(GetParam().text), HasSubstr(GetParam().words));
}

std::string tensor(const std::string& fields) {
  return R"({"tensors":[{"name":"x",)" + fields + R"(}],"ops":[]})";
}

std::string chain(const std::string& a, const std::string& uf, const std::string& more = "") {
  return R"({"chain":{"L":1,"a":)" + a + R"(,"b":[0,3],"g":[1,1],"uf":)" + uf + R"(,"ub":[1])" +
         more + "}}";
}

const std::vector<Wrong>& wrong_problems() {
  static const std::string fine = R"("inputs":[0],"outputs":[1])";
  static const std::vector<Wrong> all = {
      {"Empty", "", "no JSON"},
      {"Truncated", R"({"tensors":[{"name")", "no JSON"},
      {"NotUtf8", "{\"name\":\"\xff\"}", "no JSON"},
      {"Nan", tensor(R"("bytes":NaN)"), "NaN"},
      {"BeyondDoubles", tensor(R"("bytes":1e999)"), "1e999"},
      {"NoObject", "[1]", "expected an object"},
      {"NoForm", "{}", "none of the fields"},
      {"TwoForms", R"({"ops":[],"tensors":[],"buffers":[]})", "'ops' and 'buffers'"},
      {"OtherFormat", R"({"format":"onnx","buffers":[]})", "format 'onnx'"},
      {"LaterVersion", R"({"version":2,"buffers":[]})", "version 2"},
      {"TwiceTheSameField", R"({"buffers":[],"buffers":[]})", "two fields \"buffers\""},
      {"DeepNesting", std::string(100'000, '['), "deeper than 32"},
      {"MissingField", tensor(R"("kind":"temp")"), "tensors[0] 'x': field 'bytes' is missing"},
      {"NegativeSize", tensor(R"("bytes":-1)"), "tensors[0] 'x': bytes: -1"},
      {"FractionalSize", tensor(R"("bytes":1.5)"), "bytes: 1.5; expected a whole number"},
      {"SizeBeyond63Bits", tensor(R"("bytes":9223372036854775808)"), "beyond 2^63"},
      {"SizeBeyond64Bits", tensor(R"("bytes":99999999999999999999)"), "beyond 2^63"},
      {"NegativeBeyond63Bits", tensor(R"("bytes":-99999999999999999999)"), "beyond 2^63"},
      {"SizeAsText", tensor(R"("bytes":"4")"), "bytes: \"4\"; expected a whole number"},
      {"UnknownKind", tensor(R"("bytes":1,"kind":"weight")"), "kind 'weight'"},
      {"NameAsNumber", R"({"tensors":[{"name":1,"bytes":1}],"ops":[]})", "name: 1"},
      {"SumBeyond63Bits", R"({"tensors":[{"bytes":9223372036854775807},{"bytes":1}],"ops":[]})",
       "bytes of all tensors"},
      {"TensorsNoArray", R"({"tensors":{},"ops":[]})", "tensors: an object; expected an array"},
      {"UnknownInput", graph(R"("inputs":[3],"outputs":[1])"),
       "ops[0] 'f': inputs has tensor 3; the problem has 3 tensors"},
      {"NegativeIndex", graph(R"("inputs":[-1],"outputs":[1])"), "inputs[0]: -1"},
      {"TwoProducers", graph(R"("inputs":[0],"outputs":[1,2])"), "which has a producer already"},
      {"MakesAnInput", graph(R"("inputs":[],"outputs":[0,1])"), "'x', which is there before"},
      {"OutputNobodyMakes", graph(fine, R"("inputs":[1],"outputs":[])"),
       "output 'y' is made by no op"},
      {"NegativeCost", R"({"tensors":[],"ops":[{"inputs":[],"outputs":[],"cost":-2}]})",
       "ops[0]: cost: -2"},
      {"NegativeWorkspace", graph(fine + R"(,"workspace":-3)"), "workspace: -3"},
      {"RecomputableNoBoolean", graph(fine + R"(,"recomputable":1)"), "expected true or false"},
      {"InplaceBeyondInputs", graph(fine + R"(,"inplace":1)"), "inplace 1"},
      {"InplaceOnAnInput", graph(fine + R"(,"inplace":0)"), "'x', which is an input"},
      {"StageCount", chain("[1,1,1]", "[1]"), "a has 3 entries; with L = 1 it has 2"},
      {"RecordBelowOutput", chain("[1,4]", "[1]"), "b = 3 and a = 4"},
      {"NegativeStageCost", chain("[1,1]", "[-1]"), "chain: uf[0]: -1"},
      {"HugeL", R"({"chain":{"L":4294967296,"a":[]}})", "L = 4294967296"},
      {"NoStages", R"({"chain":{"L":0}})", "chain: L: 0"},
      {"ChainCostBeyond63Bits", chain("[1,1]", "[9223372036854775807]", R"(,"ul":1)"),
       "cost of the chain"},
      {"HugeSteps", R"({"steps":4294967296,"a":1,"b":1,"g":1,"uf":1,"ub":1})", "4294967296"},
      {"UniformBytesBeyond63Bits",
       R"({"steps":9000000,"a":1,"b":9000000000000,"g":1,"uf":1,"ub":1})", "2^63"},
      {"EmptyLifetime", R"({"buffers":[{"start":3,"end":3,"bytes":1}]})", "start 3, end 3"},
      {"OddAlignment", R"({"buffers":[],"alignment":3})", "power of two"},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, WrongProblem, ::testing::ValuesIn(wrong_problems()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace reprise::planner
