#include "schedule/problem.h"

#include <functional>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "tests/schedule/problem_builder.h"

namespace reprise::schedule {
namespace {

using ::testing::HasSubstr;
using testing::ProblemBuilder;

// x -> f -> a -> g -> b, where g works in place on a.
ProblemBuilder correct() {
  ProblemBuilder p;
  p.tensor("x", 4, TensorKind::kInput).tensor("a", 4).tensor("b", 4, TensorKind::kOutput);
  p.op("f", {"x"}, {"a"});
  p.op("g", {"a"}, {"b"}).inplace = {{0, 0, true}};
  return p;
}

// The message for `correct()` after one change.
std::string refusal(const std::function<void(Problem&)>& change) {
  ProblemBuilder p = correct();
  change(p.problem());
  try {
    validate(p.problem());
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

TEST(Problem, AcceptsACorrectOne) {
  EXPECT_EQ(refusal([](Problem&) {}), "accepted");
  EXPECT_NO_THROW(validate(Problem{}));
}

TEST(Problem, SetsTheAlgorithmsWorthHavingFastestFirst) {
  Op op;
  // 0 is dearer and larger than 3; 2 costs what 1 does and is larger; 4 is 3 again.
  const auto kept = set_algorithms(op, {{100, 9}, {0, 20}, {10, 20}, {50, 5}, {50, 5}, {40, 8}});
  EXPECT_THAT(kept, ::testing::ElementsAre(3, 5, 1));
  EXPECT_EQ(op.algorithm(0), (Algorithm{50, 5}));
  EXPECT_EQ(op.algorithm(1), (Algorithm{40, 8}));
  EXPECT_EQ(op.algorithm(2), (Algorithm{0, 20}));
  EXPECT_EQ(op.least_workspace(), 0);
  EXPECT_THAT(set_algorithms(op, {{7, 3}}), ::testing::ElementsAre(0));
  EXPECT_EQ(op.choices(), 1u);
  EXPECT_EQ(op.least_workspace(), 7);
}

TEST(Problem, RejectsAlgorithmsOutOfOrder) {
  const auto with = [](std::vector<Algorithm> leaner) {
    return refusal([&](Problem& p) {
      p.ops[OpId(0)].workspace = 8;
      p.ops[OpId(0)].leaner = leaner;
    });
  };
  EXPECT_EQ(with({{4, 2}, {0, 3}}), "accepted");  // the first one costs 1
  EXPECT_THAT(with({{4, 1}}), HasSubstr("op 'f': algorithm 1 takes 4 bytes and costs 1, the one "
                                        "before it 8 and 1"));
  EXPECT_THAT(with({{4, 2}, {4, 3}}), HasSubstr("op 'f': algorithm 2 takes 4 bytes"));
  EXPECT_THAT(with({{-4, 2}}), HasSubstr("op 'f': algorithm 1 has a workspace of -4 bytes"));
  EXPECT_THAT(with({{4, kLargest}}), HasSubstr("cost of all ops"));
}

TEST(Problem, RejectsUnknownTensors) {
  EXPECT_EQ(refusal([](Problem& p) { p.ops[OpId(1)].inputs[0] = TensorId(3); }),
            "op 'g' reads tensor 3; the problem has 3 tensors");
  EXPECT_EQ(refusal([](Problem& p) { p.ops[OpId(1)].outputs[0] = TensorId(9); }),
            "op 'g' makes tensor 9; the problem has 3 tensors");
}

TEST(Problem, RejectsNegativeSizesAndCosts) {
  EXPECT_THAT(refusal([](Problem& p) { p.tensors[TensorId(1)].bytes = -1; }),
              HasSubstr("tensor 'a': -1 bytes"));
  EXPECT_THAT(refusal([](Problem& p) { p.ops[OpId(0)].workspace = -64; }),
              HasSubstr("op 'f': workspace of -64 bytes"));
  EXPECT_THAT(refusal([](Problem& p) { p.ops[OpId(0)].cost = -2; }), HasSubstr("op 'f': cost -2"));
}

TEST(Problem, RejectsTotalsThatWrap) {
  EXPECT_THAT(refusal([](Problem& p) { p.tensors[TensorId(0)].bytes = kLargest; }),
              HasSubstr("bytes of all tensors"));
  EXPECT_THAT(refusal([](Problem& p) { p.ops[OpId(0)].workspace = kLargest - 11; }),
              HasSubstr("workspaces"));
  EXPECT_EQ(refusal([](Problem& p) { p.ops[OpId(0)].workspace = kLargest - 12; }), "accepted");
  EXPECT_THAT(refusal([](Problem& p) { p.ops[OpId(0)].cost = kLargest; }), HasSubstr("cost"));
}

TEST(Problem, RejectsWrongProducers) {
  EXPECT_EQ(refusal([](Problem& p) { p.ops[OpId(1)].outputs[0] = TensorId(1); }),
            "op 'g' makes 'a', which has a producer already");
  EXPECT_EQ(refusal([](Problem& p) { p.tensors[TensorId(1)].kind = TensorKind::kInput; }),
            "op 'f' makes 'a', which is there before the first op");
  EXPECT_EQ(refusal([](Problem& p) {
              p.ops[OpId(1)].outputs.clear();
              p.ops[OpId(1)].inplace.clear();
            }),
            "output 'b' is made by no op");
}

TEST(Problem, RejectsReadersBeforeTheProducer) {
  EXPECT_EQ(refusal([](Problem& p) { p.ops[OpId(0)].inputs[0] = TensorId(2); }),
            "op 'f' reads 'b', which no op before it makes");
  EXPECT_EQ(refusal([](Problem& p) { p.ops[OpId(0)].inputs[0] = TensorId(1); }),
            "op 'f' reads 'a', which no op before it makes");
}

TEST(Problem, RejectsImpossibleInplacePairs) {
  EXPECT_THAT(refusal([](Problem& p) { p.ops[OpId(1)].inplace[0].input = 1; }),
              HasSubstr("in-place pair input 1 > output 0 does not exist"));
  EXPECT_THAT(refusal([](Problem& p) { p.ops[OpId(1)].inplace[0].output = -1; }),
              HasSubstr("in-place pair input 0 > output -1 does not exist"));
  EXPECT_THAT(refusal([](Problem& p) { p.tensors[TensorId(2)].bytes = 5; }),
              HasSubstr("'a' (4 bytes) > 'b' (5 bytes)"));
  EXPECT_THAT(refusal([](Problem& p) {
                p.ops[OpId(1)].inputs[0] = TensorId(0);
                p.tensors[TensorId(0)].kind = TensorKind::kResident;
              }),
              HasSubstr("destroys 'x', which is resident"));
  EXPECT_THAT(refusal([](Problem& p) {
                p.ops[OpId(1)].inplace.push_back({0, 0, true});
              }),
              HasSubstr("two forced in-place pairs share 'a'"));
}

}  // namespace
}  // namespace reprise::schedule
