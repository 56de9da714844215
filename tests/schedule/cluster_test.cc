// Steps on many ranks, with the time line of each in a comment.

#include "schedule/cluster.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/schedule/small_graph.h"

namespace reprise::schedule {
namespace {

using ::testing::ElementsAre;
using testing::GraphMaker;
using Sum = StepEstimate::Sum;

// Nodes by name, each with a cost: "a+" sums a gradient of 40 bytes, "a-" awaits it.
struct Step {
  graph::PreparedGraph prepared;
  Schedule schedule;
};

Step make_step(const std::vector<std::pair<std::string, std::int64_t>>& instructions) {
  GraphMaker make("step");
  Step step;
  const ValueId x = make.outside("x", {10}, graph::Role::kInput);
  std::map<std::string, ValueId> values;
  for (const auto& [name, cost] : instructions) {
    const NodeId id(make.prepared().graph.nodes.size());
    if (name.ends_with('-')) {
      make.node(graph::OpKind::kAwait, {values.at(name.substr(0, 1) + "+")},
                {{name, {10}, graph::Role::kGradient}}, {{0, 0, true}});
    } else {
      const bool sum = name.ends_with('+');
      values[name] = make.node(sum ? graph::OpKind::kAllReduce : graph::OpKind::kRelu, {x},
                               {{name, {10}, graph::Role::kGradient}})[0];
    }
    make.prepared().nodes[id].cost_ns = cost;
    step.schedule.instructions.push_back({.node = id, .reads = {}, .writes = {}});
  }
  step.prepared = make.prepared();
  return step;
}

StepEstimate estimate(const Step& step, Bytes bucket_bytes, std::int64_t ns_per_byte) {
  return estimate_step(step.prepared, step.schedule,
                       cut_buckets(step.prepared, step.schedule, bucket_bytes),
                       [&](Bytes bytes) { return bytes * ns_per_byte; });
}

// compute: fwd 0..100, a+ at 100, bwd 100..200, b+ at 200, then waits
// link:    a 100..180, b 200..280; a- at 200 waits for nothing, b- waits 80
Step two_sums() {
  return make_step(
      {{"fwd", 100}, {"a+", 0}, {"bwd", 100}, {"b+", 0}, {"a-", 0}, {"b-", 0}, {"upd", 50}});
}

TEST(Cluster, SumsRunBesideWhatIsComputedAndTheLastOneIsWaitedFor) {
  const StepEstimate got = estimate(two_sums(), 40, 2);
  EXPECT_THAT(got.sums, ElementsAre(Sum{100, 100, 180}, Sum{200, 200, 280}));
  EXPECT_EQ(got.compute_ns, 250);
  EXPECT_EQ(got.sums_ns, 160);
  EXPECT_EQ(got.wait_ns, 80);
  EXPECT_EQ(got.step_ns, 330);
  EXPECT_DOUBLE_EQ(got.efficiency(), 250.0 / 330.0);
}

// a 100..300 is on the link when b is asked for at 200: 300..500. a- waits 100, b- 200.
TEST(Cluster, OneSumIsOnTheLinkAtATime) {
  const StepEstimate got = estimate(two_sums(), 40, 5);
  EXPECT_THAT(got.sums, ElementsAre(Sum{100, 100, 300}, Sum{200, 300, 500}));
  EXPECT_EQ(got.wait_ns, 300);
  EXPECT_EQ(got.step_ns, 550);
}

// One operation of 80 bytes, at 200: nothing overlaps.
TEST(Cluster, ABucketStartsWithItsLastMember) {
  const StepEstimate got = estimate(two_sums(), 80, 2);
  EXPECT_THAT(got.sums, ElementsAre(Sum{200, 200, 360}));
  EXPECT_EQ(got.wait_ns, 160);
  EXPECT_EQ(got.step_ns, 410);
}

// What starts a sum takes 10 itself: a+ 100..110, bwd ..210, b+ ..220; a 110..190, b 220..300.
// Recomputation ("fwd2") between a+ and b+ hides as well as anything.
TEST(Cluster, CostsOfStartsAndOfRecomputationCount) {
  const Step step = make_step(
      {{"fwd", 100}, {"a+", 10}, {"fwd2", 60}, {"bwd", 100}, {"b+", 10}, {"a-", 1}, {"b-", 1}});
  const StepEstimate got = estimate(step, 40, 2);
  EXPECT_THAT(got.sums, ElementsAre(Sum{110, 110, 190}, Sum{280, 280, 360}));
  EXPECT_EQ(got.compute_ns, 282);
  EXPECT_EQ(got.wait_ns, 79);  // 281 to 360
  EXPECT_EQ(got.step_ns, 361);
}

TEST(Cluster, AStepWithoutSumsTakesWhatItComputes) {
  const StepEstimate got = estimate(make_step({{"fwd", 7}, {"bwd", 9}}), 40, 2);
  EXPECT_EQ(got.step_ns, 16);
  EXPECT_DOUBLE_EQ(got.efficiency(), 1.0);
}

// The chosen algorithm's cost, not the first one's.
TEST(Cluster, InstructionsTakeTheCostOfTheirAlgorithm) {
  Step step = make_step({{"fwd", 7}});
  step.prepared.nodes[NodeId(0)].others = {{"lean", 0, 30}};
  step.schedule.instructions[0].algorithm = 1;
  EXPECT_EQ(estimate(step, 40, 2).step_ns, 30);
}

// 1 byte a nanosecond, latency 100 ns, 10 ns for each message, 8000 bytes over 8 ranks.
//   ring     14 hops of 110 ns, 14/8 of the bytes:  1540 + 14000
//   tree      6 hops of 110 ns, twice the bytes:     660 + 16000
//   two hops  2 of 100 ns, 14 messages of 10 ns:     340 + 14000
TEST(Cluster, ExchangesTakeWhatTheirFormulasSay) {
  const Link link{.bytes_per_second = 1e9, .latency_ns = 100, .message_ns = 10};
  EXPECT_EQ(exchange_ns(Exchange::kRing, 8, 8000, link), 15540);
  EXPECT_EQ(exchange_ns(Exchange::kTree, 8, 8000, link), 16660);
  EXPECT_EQ(exchange_ns(Exchange::kTwoHop, 8, 8000, link), 14340);
  // 5 ranks need 3 levels as 8 do; 4 need 2.
  EXPECT_EQ(exchange_ns(Exchange::kTree, 5, 0, link), 660);
  EXPECT_EQ(exchange_ns(Exchange::kTree, 4, 0, link), 440);
  // 1 MiB over 2 ranks is 2 segments of two parts of 256 KiB: 2 * 2 messages, 1 MiB of bytes.
  EXPECT_EQ(exchange_ns(Exchange::kTwoHop, 2, 1 << 20, link), 200 + 40 + (1 << 20));
  for (const Exchange exchange : kExchanges) EXPECT_EQ(exchange_ns(exchange, 1, 8000, link), 0);
}

// A bandwidth of 10 GB/s at 5 us: 4 KiB over 1024 ranks belong on a tree, 1 GiB over 4 on a ring.
TEST(Cluster, ATreeIsForSmallSumsOfManyRanks) {
  const Link link{.bytes_per_second = 1e10, .latency_ns = 5000, .message_ns = 1000};
  EXPECT_LT(exchange_ns(Exchange::kTree, 1024, 4096, link),
            exchange_ns(Exchange::kRing, 1024, 4096, link));
  EXPECT_LT(exchange_ns(Exchange::kRing, 4, 1 << 30, link),
            exchange_ns(Exchange::kTree, 4, 1 << 30, link));
}

}  // namespace
}  // namespace reprise::schedule
