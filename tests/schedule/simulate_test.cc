#include "schedule/simulate.h"

#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/schedule/problem_builder.h"

namespace reprise::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ProblemBuilder;

constexpr auto kResident = TensorKind::kResident;
constexpr auto kInput = TensorKind::kInput;
constexpr auto kOutput = TensorKind::kOutput;
constexpr graph::InplacePair kForced{0, 0, true};
constexpr graph::InplacePair kOptional{0, 0, false};

MemoryProfile profile(const Problem& problem, const Order& order) {
  validate(problem);
  const TraceResult result = trace_order(problem, order);
  EXPECT_FALSE(result.fault) << result.fault->message;
  return profile_memory(result.trace);
}

std::string fault(const Problem& problem, const Order& order) {
  validate(problem);
  const TraceResult result = trace_order(problem, order);
  return result.fault ? result.fault->message : "no fault";
}

// x(10) -> f -> a(4) -> g -> b(3), with b an output.
ProblemBuilder two_steps(TensorKind x) {
  ProblemBuilder p;
  p.tensor("x", 10, x).tensor("a", 4).tensor("b", 3, kOutput);
  p.op("f", {"x"}, {"a"});
  p.op("g", {"a"}, {"b"});
  return p;
}

TEST(Simulate, PeakIsReadAfterOutputsAppearAndBeforeDeadInputsGo) {
  auto p = two_steps(kInput);
  // f: x 10 + a 4 = 14; g: x is gone, a 4 + b 3 = 7.
  const MemoryProfile m = profile(p.problem(), p.order({"f", "g"}));
  EXPECT_THAT(m.live_bytes, ElementsAre(14, 7));
  EXPECT_EQ(m.peak, 14);
  EXPECT_EQ(m.peak_step, 0);
}

TEST(Simulate, CountsTheChosenAlgorithmInEveryRunOfItsOp) {
  auto p = two_steps(kResident);
  Op& f = p.problem().ops[p.op_id("f")];
  f.workspace = 8;
  f.leaner = {{2, 5}};
  const Order order = p.order({"f", "f", "g"});
  // Fast: f takes x 10 + a 4 + 8 = 22 and costs 1 each time; lean: 16 and 5.
  const TraceResult fast = trace_order(p.problem(), order);
  EXPECT_THAT(profile_memory(fast.trace).live_bytes, ElementsAre(22, 22, 17));
  EXPECT_EQ(fast.trace.cost, 3);
  const TraceResult lean = trace_order(p.problem(), order, {1, 0});
  EXPECT_THAT(profile_memory(lean.trace).live_bytes, ElementsAre(16, 16, 17));
  EXPECT_EQ(lean.trace.cost, 11);
  EXPECT_THAT(profile_memory(trace_order(p.problem(), order, {0, 0}).trace).live_bytes,
              ElementsAre(22, 22, 17));
}

TEST(Simulate, ResidentTensorsCountInEveryStep) {
  auto p = two_steps(kResident);
  // g: x 10 + a 4 + b 3 = 17.
  EXPECT_THAT(profile(p.problem(), p.order({"f", "g"})).live_bytes, ElementsAre(14, 17));
}

TEST(Simulate, WorkspaceCountsOnlyWhileItsOpRuns) {
  auto p = two_steps(kInput);
  p.problem().ops[p.op_id("f")].workspace = 100;
  EXPECT_THAT(profile(p.problem(), p.order({"f", "g"})).live_bytes, ElementsAre(114, 7));
}

TEST(Simulate, AnUnreadInputIsThereAtTheFirstStepOnly) {
  auto p = two_steps(kResident);
  p.tensor("labels", 50, kInput);
  EXPECT_THAT(profile(p.problem(), p.order({"f", "g"})).live_bytes, ElementsAre(64, 17));
}

TEST(Simulate, AnEmptyOrderPeaksAtWhatIsThereBefore) {
  ProblemBuilder p;
  p.tensor("w", 10, kResident).tensor("x", 5, kInput).tensor("a", 7);
  p.op("f", {"x"}, {"a"});
  const MemoryProfile m = profile(p.problem(), {});
  EXPECT_EQ(m.peak, 15);
  EXPECT_TRUE(m.live_bytes.empty());
}

TEST(Simulate, ARepeatedOpEndsTheOldCopyAtItsLastReaderBefore) {
  // f makes a(4), g and h read it. Running f again before h frees the first copy after g:
  //   f: x1+a4   g: x1+a4+b2   k: x1+b2+c30   f: x1+b2+a4   h: a4+b2+d1 (b is an output)
  ProblemBuilder p;
  p.tensor("x", 1, kInput).tensor("a", 4).tensor("b", 2, kOutput).tensor("c", 30);
  p.tensor("d", 1, kOutput);
  p.op("f", {"x"}, {"a"});
  p.op("g", {"a"}, {"b"});
  p.op("k", {}, {"c"});
  p.op("h", {"a"}, {"d"});
  EXPECT_THAT(profile(p.problem(), p.order({"f", "g", "k", "h"})).live_bytes,
              ElementsAre(5, 6, 36, 7));
  EXPECT_THAT(profile(p.problem(), p.order({"f", "g", "k", "f", "h"})).live_bytes,
              ElementsAre(5, 7, 33, 7, 7));
}

TEST(Simulate, OfAnOutputMadeTwiceOnlyTheLastCopyStays) {
  // out(8) is read by nobody: its first copy lives for step 0 only.
  ProblemBuilder p;
  p.tensor("out", 8, kOutput).tensor("a", 1);
  p.op("f", {}, {"out"});
  p.op("g", {}, {"a"});
  EXPECT_THAT(profile(p.problem(), p.order({"f", "g", "f", "g"})).live_bytes,
              ElementsAre(8, 1, 8, 9));
}

TEST(Simulate, AParameterUpdatedInPlaceIsOneBufferForTheWholeStep) {
  ProblemBuilder p;
  p.tensor("w", 10, kInput).tensor("g", 10).tensor("w'", 10, kOutput).tensor("z", 1);
  p.op("grad", {"w"}, {"g"});
  p.op("sgd", {"w", "g"}, {"w'"}).inplace = {kForced};
  p.op("after", {}, {"z"});
  const TraceResult result = trace_order(p.problem(), p.order({"grad", "sgd", "after"}));
  ASSERT_FALSE(result.fault);
  const Copy& w = result.trace.copies[result.trace.reads(0)[0]];
  const Copy& updated = result.trace.copies[result.trace.writes(1)[0]];
  EXPECT_EQ(w.buffer, updated.buffer);
  EXPECT_EQ(result.trace.buffers[w.buffer].start, 0);
  EXPECT_EQ(result.trace.buffers[w.buffer].end, 3);
  // w+g, w+g, w'+z
  EXPECT_THAT(profile_memory(result.trace).live_bytes, ElementsAre(20, 20, 11));
}

TEST(Simulate, AnOptionalPairIsTakenWhenTheInputIsNotReadLater) {
  // relu may work in place on a(4): with no later reader 4 bytes suffice, otherwise 8.
  ProblemBuilder p;
  p.tensor("x", 0, kInput).tensor("a", 4).tensor("y", 4, kOutput).tensor("z", 1, kOutput);
  p.op("f", {"x"}, {"a"});
  p.op("relu", {"a"}, {"y"}).inplace = {kOptional};
  p.op("h", {"y"}, {"z"});
  EXPECT_THAT(profile(p.problem(), p.order({"f", "relu", "h"})).live_bytes, ElementsAre(4, 4, 5));
  p.problem().ops[p.op_id("h")].inputs = {p.tensor_id("a")};
  EXPECT_THAT(profile(p.problem(), p.order({"f", "relu", "h"})).live_bytes, ElementsAre(4, 8, 9));
}

TEST(Simulate, AnOptionalPairNeedsEqualBytesAndAnInputThatMayGo) {
  for (TensorKind kind : {TensorKind::kTemp, kOutput}) {
    for (Bytes bytes : {Bytes{4}, Bytes{5}}) {
      ProblemBuilder p;
      p.tensor("a", 4, kind).tensor("y", bytes, kOutput);
      p.op("f", {}, {"a"});
      p.op("relu", {"a"}, {"y"}).inplace = {kOptional};
      const bool shared = kind == TensorKind::kTemp && bytes == 4;
      EXPECT_EQ(profile(p.problem(), p.order({"f", "relu"})).peak, shared ? 4 : 4 + bytes);
    }
  }
}

TEST(Simulate, OneInputIsHandedToOneOutputOnly) {
  // Both outputs may take a(4): one does, the other needs 4 more.
  ProblemBuilder p;
  p.tensor("a", 4).tensor("y", 4, kOutput).tensor("z", 4, kOutput);
  p.op("f", {}, {"a"});
  p.op("split", {"a"}, {"y", "z"}).inplace = {{0, 0, false}, {0, 1, false}};
  EXPECT_THAT(profile(p.problem(), p.order({"f", "split"})).live_bytes, ElementsAre(4, 8));
}

TEST(Simulate, AnOpThatReadsATensorTwiceNeedsAPairForBothReads) {
  // square = a * a may overwrite either factor: 4. An op that may overwrite only the first still
  // reads the second: 4 + 4.
  ProblemBuilder p;
  p.tensor("a", 4).tensor("y", 4, kOutput);
  p.op("f", {}, {"a"});
  p.op("square", {"a", "a"}, {"y"}).inplace = {{0, 0, false}, {1, 0, false}};
  EXPECT_THAT(profile(p.problem(), p.order({"f", "square"})).live_bytes, ElementsAre(4, 4));
  p.problem().ops[p.op_id("square")].inplace = {{0, 0, false}};
  EXPECT_THAT(profile(p.problem(), p.order({"f", "square"})).live_bytes, ElementsAre(4, 8));
}

TEST(Simulate, NamesTheReaderOfWhatWasNeverMade) {
  auto p = two_steps(kInput);
  EXPECT_EQ(fault(p.problem(), p.order({"g"})),
            "step 0: op 'g' reads 'a', which no step before it makes");
}

TEST(Simulate, NamesTheOpThatDestroysWhatIsReadLater) {
  ProblemBuilder p;
  p.tensor("w", 8, kInput).tensor("w'", 8, kOutput).tensor("y", 1, kOutput);
  p.op("forward", {"w"}, {"y"});
  p.op("sgd", {"w"}, {"w'"}).inplace = {kForced};
  EXPECT_EQ(fault(p.problem(), p.order({"forward", "sgd"})), "no fault");
  EXPECT_EQ(fault(p.problem(), p.order({"sgd", "forward"})),
            "step 0: op 'sgd' works in place on 'w', which op 'forward' reads at step 1");
}

TEST(Simulate, ADestroyedOutputIsAFaultUntilItIsMadeAgain) {
  ProblemBuilder p;
  p.tensor("s", 8, kOutput).tensor("s'", 8, kOutput);
  p.op("make", {}, {"s"});
  p.op("add", {"s"}, {"s'"}).inplace = {kForced};
  EXPECT_THAT(fault(p.problem(), p.order({"make", "add"})), HasSubstr("must stay to the end"));
  // s, then s' in its place, then s again beside it.
  EXPECT_THAT(profile(p.problem(), p.order({"make", "add", "make"})).live_bytes,
              ElementsAre(8, 8, 16));
}

TEST(Simulate, NamesWhatRunsTooOftenOrNever) {
  auto p = two_steps(kInput);
  p.problem().ops[p.op_id("f")].recomputable = false;
  EXPECT_EQ(fault(p.problem(), p.order({"f", "f", "g"})),
            "step 1: op 'f' runs a second time; it may run only once");
  EXPECT_EQ(fault(p.problem(), p.order({"f"})), "after the last step: output 'b' was never made");
  p.tensor("c", 1);
  p.op("log", {}, {"c"}).recomputable = false;
  EXPECT_EQ(fault(p.problem(), p.order({"f", "g"})),
            "after the last step: op 'log' never ran; it must run once");
  EXPECT_THAT(fault(p.problem(), {OpId(77)}), HasSubstr("op 77 does not exist"));
}

// Recomputation on a chain of 16 layers of 1 MiB each, in units of MiB. backward(i) reads the
// gradient of layer i and the output of layer i - 1. With k segments k - 1 boundaries are kept, and
// the last segment is whole when the loss is reached: (k - 1) + 16 / k, plus one gradient.
TEST(Simulate, ChainOfSixteenLayersInSegments) {
  constexpr int kLayers = 16;
  ProblemBuilder p;
  p.tensor("a0", 0, kResident);
  for (int i = 1; i <= kLayers; ++i) p.tensor(fmt::format("a{}", i), 1);
  for (int i = 0; i <= kLayers; ++i)
    p.tensor(fmt::format("d{}", i), 1, i == 0 ? kOutput : TensorKind::kTemp);
  const auto name = [](char letter, int i) { return fmt::format("{}{}", letter, i); };
  for (int i = 1; i <= kLayers; ++i) {
    p.op(name('f', i), {name('a', i - 1).c_str()}, {name('a', i).c_str()});
  }
  p.op("loss", {"a16"}, {"d16"});
  for (int i = kLayers; i >= 1; --i) {
    p.op(name('b', i), {name('d', i).c_str(), name('a', i - 1).c_str()},
         {name('d', i - 1).c_str()});
  }
  const std::vector<std::pair<int, Bytes>> activations{{1, 16}, {2, 9}, {4, 7}, {8, 9}, {16, 16}};
  for (const auto& [segments, expected] : activations) {
    const int length = kLayers / segments;
    Order order;
    for (int i = 1; i <= kLayers; ++i) order.push_back(p.op_id(name('f', i)));
    order.push_back(p.op_id("loss"));
    for (int last = kLayers; last > 0; last -= length) {
      for (int i = last - length + 1; last < kLayers && i < last; ++i) {
        order.push_back(p.op_id(name('f', i)));  // again, up to the last but one of the segment
      }
      for (int i = last; i > last - length; --i) order.push_back(p.op_id(name('b', i)));
    }
    EXPECT_EQ(profile(p.problem(), order).peak, expected + 1) << segments << " segments";
  }
}

// A, C for the first two steps, B throughout, D for the last two: 4 + 4 + 4, then 4 + 8 MiB.
TEST(Simulate, LiveSumOfTheFragmentationExample) {
  constexpr Bytes kUnit = 4 * base::kMiB;
  ProblemBuilder p;
  p.tensor("A", kUnit, kInput).tensor("B", kUnit, kInput).tensor("C", kUnit, kInput);
  p.tensor("D", 2 * kUnit);
  for (const char* none : {"n0", "n1", "n3"}) p.tensor(none, 0);
  p.op("s0", {"A", "B", "C"}, {"n0"});
  p.op("s1", {"A", "C"}, {"n1"});
  p.op("s2", {}, {"D"});
  p.op("s3", {"B", "D"}, {"n3"});
  EXPECT_THAT(profile(p.problem(), p.order({"s0", "s1", "s2", "s3"})).live_bytes,
              ElementsAre(12 * base::kMiB, 12 * base::kMiB, 12 * base::kMiB, 12 * base::kMiB));
}

}  // namespace
}  // namespace reprise::schedule
