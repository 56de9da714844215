// Which sums over ranks are one operation.

#include "schedule/buckets.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "graph/buckets.h"
#include "tests/schedule/small_graph.h"

namespace reprise::schedule {
namespace {

using ::testing::ElementsAre;
using testing::GraphMaker;
using ::testing::IsEmpty;

constexpr Bytes kKiB = 1024;

// "a+" begins the sum of gradient a, "a-" awaits it, "." is some other instruction.
struct Step {
  graph::PreparedGraph prepared;
  Schedule schedule;
};

Step make_step(const std::vector<std::pair<char, Bytes>>& gradients,
               const std::vector<std::string>& instructions) {
  GraphMaker make("step");
  std::map<std::string, NodeId> nodes;
  const auto add = [&](const std::string& name, graph::OpKind op, ValueId input, Bytes bytes) {
    nodes[name] = NodeId(make.prepared().graph.nodes.size());
    return make.node(op, {input}, {{name, {bytes / 4}, graph::Role::kGradient}}, {{0, 0, true}})[0];
  };
  const ValueId x = make.outside("x", {1}, graph::Role::kInput);
  add(".", graph::OpKind::kRelu, x, 4);
  for (const auto& [letter, bytes] : gradients) {
    const std::string name(1, letter);
    const ValueId gradient = make.outside(name, {bytes / 4}, graph::Role::kInput);
    const ValueId sum = add(name + "+", graph::OpKind::kAllReduce, gradient, bytes);
    add(name + "-", graph::OpKind::kAwait, sum, bytes);
  }
  Step step{.prepared = make.prepared(), .schedule = {}};
  for (const std::string& each : instructions)
    step.schedule.instructions.push_back({.node = nodes.at(each), .reads = {}, .writes = {}});
  return step;
}

// "ab@3 60": members, instruction of the start, bytes.
std::vector<std::string> cut(const Step& step, Bytes most) {
  std::vector<std::string> all;
  for (const Bucket& bucket : cut_buckets(step.prepared, step.schedule, most)) {
    std::string text;
    for (const NodeId member : bucket.members)
      text += step.prepared.graph.nodes[member].name.substr(0, 1);
    all.push_back(fmt::format("{}@{} {}", text, bucket.start, bucket.bytes));
  }
  return all;
}

TEST(Buckets, TakeGradientsInTheOrderOfTheScheduleUntilTheyAreFull) {
  const Step step = make_step({{'a', 40}, {'b', 40}, {'c', 40}, {'d', 40}},
                              {"c+", ".", "a+", "d+", ".", "b+", "c-", "a-", "d-", "b-"});
  EXPECT_THAT(cut(step, 80), ElementsAre("ca@2 80", "db@5 80"));
  EXPECT_THAT(cut(step, 119), ElementsAre("ca@2 80", "db@5 80"));  // a third would be too much
  EXPECT_THAT(cut(step, 120), ElementsAre("cad@3 120", "b@5 40"));
  EXPECT_THAT(cut(step, 1), ElementsAre("c@0 40", "a@2 40", "d@3 40", "b@5 40"));
}

TEST(Buckets, AGradientLargerThanABucketIsOneByItself) {
  const Step step =
      make_step({{'a', 40}, {'b', 400}, {'c', 40}}, {"a+", "b+", ".", "c+", "a-", "b-", "c-"});
  EXPECT_THAT(cut(step, 100), ElementsAre("a@0 40", "b@1 400", "c@3 40"));
}

// a is awaited while the bucket could take more: c would come too late for it.
TEST(Buckets, EndWhereAMemberIsAwaited) {
  const Step step =
      make_step({{'a', 40}, {'b', 40}, {'c', 40}}, {"a+", "b+", ".", "a-", "c+", ".", "b-", "c-"});
  EXPECT_THAT(cut(step, 1000), ElementsAre("ab@1 80", "c@4 40"));
}

// s is awaited before the next sum begins: it starts at once, and the open bucket goes on filling.
TEST(Buckets, WhatIsAwaitedAtOnceWaitsForNoBucketToFill) {
  const Step step =
      make_step({{'a', 40}, {'s', 8}, {'b', 40}}, {"a+", "s+", ".", "s-", "b+", ".", "a-", "b-"});
  EXPECT_THAT(cut(step, 1000), ElementsAre("s@1 8", "ab@4 80"));
}

TEST(Buckets, AStepWithoutSumsHasNone) {
  EXPECT_THAT(cut(make_step({}, {".", "."}), 100), IsEmpty());
}

// 8 gradients of 64 KiB: an eighth is 64 KiB, less than the 128 KiB that an operation is worth.
// 8 of 256 KiB: an eighth is one of them, whatever more is allowed.
TEST(Buckets, AreAnEighthOfAllGradientsWhereThatIsLess) {
  EXPECT_EQ(graph::bucket_target(25600 * kKiB, 512 * kKiB), 128 * kKiB);
  EXPECT_EQ(graph::bucket_target(25600 * kKiB, 2048 * kKiB), 256 * kKiB);
  EXPECT_EQ(graph::bucket_target(25600 * kKiB, 800 * 1024 * kKiB), 25600 * kKiB);
  EXPECT_EQ(graph::bucket_target(100, 800 * 1024 * kKiB), 100);
  const Step step =
      make_step({{'a', 64 * kKiB}, {'b', 64 * kKiB}, {'c', 64 * kKiB}, {'d', 64 * kKiB}},
                {"a+", "b+", "c+", "d+", "a-", "b-", "c-", "d-"});
  EXPECT_THAT(cut(step, 25600 * kKiB), ElementsAre("ab@1 131072", "cd@3 131072"));
}

}  // namespace
}  // namespace reprise::schedule
