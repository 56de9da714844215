#include <algorithm>
#include <random>
#include <set>

#include "gtest/gtest.h"

#include "planner/blocks_options.h"
#include "planner/candidates.h"
#include "planner/lowering.h"
#include "planner/min_cut.h"
#include "planner/period.h"
#include "planner/strategy.h"
#include "tests/planner/gpt_problem.h"
#include "tests/planner/prepared_model.h"
#include "tests/planner/random_training.h"

namespace reprise::planner {
namespace {

struct FoundRun {
  Index blocks = 0, ops = 0;
};

std::vector<FoundRun> repeated_runs(const Problem& problem) {
  std::vector<FoundRun> runs;
  Index last = -1;
  const Structure structure(problem);
  for (const Block& block : find_blocks(structure)) {
    if (block.repeated && block.run != last) runs.push_back({0, block.last - block.first});
    last = block.run;
    if (block.repeated) ++runs.back().blocks;
  }
  return runs;
}

TEST(FindBlocks, CoverTheForwardPartInOrder) {
  const Problem problem = make_problem(testing::prepare_training("resnet20", {.batch = 2})).problem;
  const Structure structure(problem);
  Index next = 0;
  for (const Block& block : find_blocks(structure)) {
    EXPECT_EQ(block.first, next);
    EXPECT_LT(block.first, block.last);
    next = block.last;
  }
  EXPECT_EQ(next, structure.turn());
}

// Only the residual stream crosses from layer to layer: 4 bytes * 8 * 512 rows * 1024.
TEST(FindBlocks, SeesTheLayersOfATransformerAndCutsBetweenThem) {
  const Problem problem = testing::gpt_problem({.layers = 9});
  const Structure structure(problem);
  std::vector<Block> layers;
  for (const Block& block : find_blocks(structure)) {
    if (block.repeated) layers.push_back(block);
  }
  ASSERT_EQ(layers.size(), 9U);
  // norm, qkv, scores, softmax, dropout, mixed, joined, dropout, add; norm, wide, gelu, narrow,
  // dropout, add
  for (const Block& layer : layers) EXPECT_EQ(layer.last - layer.first, 15);
  const std::vector<Bytes> across = crossing_bytes(structure);
  for (const Block& layer : layers) {
    EXPECT_EQ(across[static_cast<std::size_t>(layer.first)], Bytes{4} * 8 * 512 * 1024);
  }
}

// Three stages of 111 bottlenecks; the first of each stage widens or halves and is like no other.
TEST(FindBlocks, SeesTheStagesOfAResidualNet) {
  const std::vector<FoundRun> runs =
      repeated_runs(make_problem(testing::prepare_training("resnet1001", {.batch = 1})).problem);
  ASSERT_EQ(runs.size(), 3U);
  for (const FoundRun& run : runs) {
    EXPECT_EQ(run.blocks, 110);
    EXPECT_EQ(run.ops, runs[0].ops);
  }
}

TEST(FindBlocks, SeesTheTimeStepsOfAnLstm) {
  models::ModelOptions options;
  options.batch = 2;
  options.hidden = 8;
  options.layers = 2;
  options.vocabulary = 16;
  options.seq_len = 256;
  options.chunk = 16;
  const std::vector<FoundRun> runs =
      repeated_runs(make_problem(testing::prepare_training("lstm", options)).problem);
  const auto longest = std::max_element(runs.begin(), runs.end(), [](auto& a, auto& b) {
    return a.blocks * a.ops < b.blocks * b.ops;
  });
  ASSERT_NE(longest, runs.end());
  EXPECT_GE(longest->blocks, 14);  // of 16 chunks; the first and the last may differ
}

TEST(FindBlocks, SeeNoRepetitionWhereEveryOpDiffers) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Problem problem = testing::TrainingDrawer(seed).run(60);
    for (std::size_t i = 0; i < problem.ops.size(); ++i) {
      problem.ops[schedule::OpId(i)].cost = 1000 + static_cast<std::int64_t>(i);
    }
    EXPECT_TRUE(repeated_runs(problem).empty()) << "seed " << seed;
  }
}

// 0 -> 2 (5), 0 -> 3 (2), 2 -> 3 (1), 2 -> 1 (3), 3 -> 1 (9): all of 2 -> 3, 2 -> 1 and 0 -> 3
// is full at a flow of 6, so 2 is on the side of the source.
TEST(MinCut, SeparatesWhereTheLeastFlows) {
  MinCut cut(4);
  cut.add_edge(0, 2, 5);
  cut.add_edge(0, 3, 2);
  cut.add_edge(2, 3, 1);
  cut.add_edge(2, 1, 3);
  cut.add_edge(3, 1, 9);
  EXPECT_EQ(cut.source_side(0, 1), (std::vector<bool>{true, false, true, false}));
}

using Point = std::pair<Bytes, std::int64_t>;  // kept, extra

// What keeping exactly these tensors costs; nothing when what may run only once would have to run
// again.
std::optional<Point> price_of(const BlockModel& block, unsigned kept) {
  std::vector<bool> there, needed;
  Point point{0, 0};
  for (std::size_t t = 0; t < block.tensors.size(); ++t) {
    there.push_back(block.tensors[t].outside || (kept >> t & 1U) != 0);
    needed.push_back(block.tensors[t].needed);
    if (there[t]) point.first += block.tensors[t].bytes;
  }
  for (std::size_t i = block.ops.size(); i-- > 0;) {
    bool again = false;
    for (std::size_t t = 0; t < block.tensors.size(); ++t) {
      again = again || (block.tensors[t].op == static_cast<Index>(i) && needed[t] && !there[t]);
    }
    if (!again) continue;
    if (!block.ops[i].rerunnable) return std::nullopt;
    point.second += block.ops[i].cost;
    for (const std::int32_t t : block.ops[i].inputs) needed[static_cast<std::size_t>(t)] = true;
  }
  return point;
}

// Lower convex hull by its definition: no point and no line between two points is below.
std::set<Point> hull_of(std::set<Point> points) {
  const auto below_line = [](Point p, Point a, Point b) {  // a.kept < p.kept < b.kept
    return (p.second - b.second) * (b.first - a.first) >=
           (a.second - b.second) * (b.first - p.first);
  };
  std::set<Point> hull;
  for (const Point& p : points) {
    const bool useless = std::any_of(points.begin(), points.end(), [&](Point q) {
      if (q != p && q.first <= p.first && q.second <= p.second) return true;
      return std::any_of(points.begin(), points.end(), [&](Point r) {
        return q.first < p.first && p.first < r.first && q.second > r.second && below_line(p, q, r);
      });
    });
    if (!useless) hull.insert(p);
  }
  return hull;
}

BlockModel draw_block(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  using schedule::testing::draw;
  BlockModel block;
  const std::int64_t ops = draw(random, 3, 6);
  for (std::int64_t i = 0; i < ops; ++i) {
    BlockOp op{.cost = draw(random, 1, 30), .rerunnable = draw(random, 0, 7) > 0, .inputs = {}};
    for (std::size_t t = 0; t < block.tensors.size(); ++t) {
      if (draw(random, 0, 2) == 0) op.inputs.push_back(static_cast<std::int32_t>(t));
    }
    block.ops.push_back(op);
    const std::int64_t outputs = draw(random, 1, 10) > 8 ? 2 : 1;
    for (std::int64_t k = 0; k < outputs; ++k) {
      block.tensors.push_back({.bytes = draw(random, 1, 40),
                               .op = static_cast<std::int32_t>(i),
                               .needed = draw(random, 0, 2) > 0,
                               .outside = draw(random, 0, 7) == 0});
    }
  }
  return block;
}

TEST(BlockOptions, AreTheHullOfAllChoices) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const BlockModel block = draw_block(seed);
    std::set<Point> all;
    for (unsigned kept = 0; kept < 1U << block.tensors.size(); ++kept) {
      if (const auto point = price_of(block, kept)) all.insert(*point);
    }
    std::set<Point> found;
    for (const BlockOption& option : hull_of_options(block, 100)) {
      found.insert({option.kept, option.extra});
      unsigned kept = 0;
      for (std::size_t t = 0; t < option.keep.size(); ++t) kept |= option.keep[t] ? 1U << t : 0;
      EXPECT_EQ(price_of(block, kept), (Point{option.kept, option.extra})) << "seed " << seed;
    }
    EXPECT_EQ(found, hull_of(all)) << "seed " << seed;
  }
}

// 2,830 layers of 41 ops. The bounds are those reached by a prototype on a graph of this kind.
TEST(Blocks, PlanALargeTransformerAtHalfAndAtThirtyPercentOfItsMemory) {
  const Problem problem = testing::gpt_problem({.layers = 2830});
  ASSERT_GE(problem.ops.size(), 116'000U);
  Request request;
  request.problem = &problem;
  request.measure = Measure::kLivePeak;
  request.cache = make_plan_cache();
  request.budget = Bytes{1} << 60;
  const Plan all = std::get<Plan>(find_strategy("keep_all").plan(request));
  const auto extra_at = [&](Bytes percent) {
    request.budget = all.live_peak / 100 * percent;
    const Plan plan = std::get<Plan>(find_strategy("blocks").plan(request));
    const schedule::TraceResult traced = schedule::trace_order(problem, plan.order);
    EXPECT_FALSE(traced.fault.has_value());
    EXPECT_LE(schedule::profile_memory(traced.trace).peak, request.budget);
    return 100.0 * static_cast<double>(traced.trace.cost) / static_cast<double>(all.cost) - 100;
  };
  EXPECT_LE(extra_at(50), 4.7);
  EXPECT_LE(extra_at(30), 8.8);
}

}  // namespace
}  // namespace reprise::planner
