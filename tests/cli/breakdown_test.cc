#include "cli/breakdown.h"

#include <gtest/gtest.h>

#include "fmt/format.h"

#include "api/plan.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "kernels/backend.h"

namespace reprise::cli {
namespace {

// Four blocks "b<i>.fc", "b<i>.act" of [64,16] values: 4 KiB each in f32, 8 KiB as the reference
// backend stores them.
schedule::PlannedStep plan_blocks(int blocks, const api::PlanOptions& options) {
  graph::Builder net("blocks");
  auto x = net.input("x", {64, 16});
  for (int i = 0; i < blocks; ++i) {
    const graph::Builder::Scope scope(net, fmt::format("b{}.", i));
    x = net.sigmoid(net.linear(x, net.parameter("w", {16, 16}), "fc"), "act");
  }
  net.set_loss(net.reduce_mean(x, {}, false, "loss"));
  const graph::Graph training = graph::make_training_graph(net.finish(), {}).graph;
  const auto program = kernels::make_reference_backend()->prepare(training);
  auto planned = api::plan_step(program->prepared(), options);
  return std::get<api::PlannedTraining>(std::move(planned)).step;
}

std::int64_t sum_of(const std::vector<GroupFate>& fates, std::int64_t GroupFate::*field) {
  std::int64_t sum = 0;
  for (const GroupFate& fate : fates) sum += fate.*field;
  return sum;
}

TEST(Breakdown, WithoutRecomputationEveryActivationIsKeptOnce) {
  const auto step = plan_blocks(4, {});
  const auto parts = fate_by_part(step);
  ASSERT_EQ(parts.size(), 5U);  // b0 ... b3, loss
  EXPECT_EQ(parts[0].group, "b0");
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(parts[i].nodes, 2) << i;
    EXPECT_EQ(parts[i].recomputed, 0) << i;
    // The sigmoid works in place on the product, and backward reads its output: 64 * 16 * 8 bytes.
    EXPECT_EQ(parts[i].kept_bytes, 64 * 16 * 8) << i;
  }
}

TEST(Breakdown, ExtraRunsAddUpToWhatTheScheduleRepeats) {
  const auto step = plan_blocks(8, {.budget = {.kind = api::Budget::Kind::kFloor}});
  std::vector<int> runs(step.prepared.graph.nodes.size(), 0);
  std::int64_t forward_repeats = 0;
  for (const auto& instruction : step.schedule.instructions) {
    const bool repeat = ++runs[instruction.node.index()] > 1;
    const auto phase = step.prepared.graph.nodes[instruction.node].phase;
    if (repeat && phase == graph::Phase::kForward) ++forward_repeats;
  }
  EXPECT_GT(forward_repeats, 0);
  EXPECT_EQ(sum_of(fate_by_part(step), &GroupFate::extra_runs), forward_repeats);
  EXPECT_EQ(sum_of(fate_by_op(step), &GroupFate::extra_runs), forward_repeats);
  EXPECT_LT(sum_of(fate_by_part(step), &GroupFate::kept_bytes), 8 * 64 * 16 * 8);
}

TEST(Breakdown, ManyNumberedPartsAreOne) {
  const auto step = plan_blocks(30, {.planner = "keep_all", .find_floor = false});
  const auto parts = fate_by_part(step);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].group, "b*");
  EXPECT_EQ(parts[0].nodes, 60);
  EXPECT_EQ(fate_by_part(step, 31).size(), 31U);
}

TEST(Breakdown, CategoriesAddUpToTheArena) {
  for (const auto kind : {api::Budget::Kind::kUnlimited, api::Budget::Kind::kFloor}) {
    const auto step = plan_blocks(6, {.budget = {.kind = kind}});
    Bytes sum = 0;
    for (const auto& item : break_down_peak(step).items) sum += item.bytes;
    EXPECT_EQ(sum, step.schedule.arena_bytes);
  }
}

}  // namespace
}  // namespace reprise::cli
