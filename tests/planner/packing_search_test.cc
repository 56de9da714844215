#include "planner/packing_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "gtest/gtest.h"

#include "planner/offsets.h"
#include "planner/packing_levels.h"
#include "planner/portfolio.h"

namespace reprise::planner {
namespace {

constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

struct Instance {
  std::vector<TimeRange> times;
  std::vector<Bytes> bytes;
};

Instance random_instance(std::uint64_t seed, int count, std::int64_t span, Bytes largest) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  Instance instance;
  for (int i = 0; i < count; ++i) {
    const std::int64_t start = draw(0, span - 1);
    instance.times.push_back({start, draw(start + 1, std::min(span, start + 4))});
    instance.bytes.push_back(draw(1, largest));
  }
  return instance;
}

// The smallest arena, by trying every sequence of items, each as low as those before leave it (not
// in a hole below them): all packings pushed down are among them.
Bytes smallest_arena(const PackItems& problem) {
  std::vector<std::size_t> order(problem.items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Bytes best = kEndless;
  do {
    std::vector<Bytes> top(static_cast<std::size_t>(problem.sections), 0);
    Bytes arena = 0;
    for (const std::size_t i : order) {
      const PackItem& item = problem.items[i];
      const auto first = top.begin() + item.begin, last = top.begin() + item.end;
      const Bytes offset = *std::max_element(first, last);
      arena = std::max(arena, offset + item.bytes);
      std::fill(first, last, offset + item.aligned);
      if (arena >= best) break;
    }
    best = std::min(best, arena);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

void expect_packing(const PackItems& problem, const std::vector<Bytes>& offsets, Bytes capacity) {
  ASSERT_EQ(offsets.size(), problem.items.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const PackItem& a = problem.items[i];
    ASSERT_GE(offsets[i], 0);
    ASSERT_EQ(offsets[i] % problem.alignment, 0);
    ASSERT_LE(offsets[i] + a.bytes, capacity);
    for (std::size_t j = 0; j < i; ++j) {
      const PackItem& b = problem.items[j];
      const bool in_time = a.begin < b.end && b.begin < a.end;
      const bool in_space = offsets[i] < offsets[j] + b.bytes && offsets[j] < offsets[i] + a.bytes;
      ASSERT_FALSE(in_time && in_space) << j << " and " << i;
    }
  }
}

PackingSearch::Result search(const PackItems& problem, Bytes capacity, PlaceChoice choice,
                             std::int64_t steps = kEndless) {
  const Conflicts conflicts = *Conflicts::find(problem.items, kEndless);
  PackingSearch::Limits limits;
  const Bytes full = (capacity + problem.slack) / problem.alignment * problem.alignment;
  limits.room.assign(static_cast<std::size_t>(problem.sections), full);
  limits.capacity = capacity;
  limits.steps = steps;
  const std::vector<double> priority(problem.items.size(), 1);
  return PackingSearch(problem, conflicts).run(priority, choice, limits);
}

TEST(PackingSearch, FindsTheSmallestArenaAndProvesThatNoneIsSmaller) {
  int above_bound = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Instance instance = random_instance(seed, 4 + static_cast<int>(seed % 4), 6, 9);
    const Bytes alignment = seed % 5 == 0 ? 4 : 1;
    const PackItems problem = make_pack_items(instance.times, instance.bytes, alignment);
    const Bytes smallest = smallest_arena(problem);
    ASSERT_LE(problem.lower_bound, smallest);
    if (problem.lower_bound < smallest) ++above_bound;
    for (const PlaceChoice choice : {PlaceChoice::kTightest, PlaceChoice::kFewest}) {
      const auto found = search(problem, smallest, choice);
      ASSERT_TRUE(found.offsets);
      expect_packing(problem, *found.offsets, smallest);
      const auto below = search(problem, smallest - 1, choice);
      ASSERT_FALSE(below.offsets);
      ASSERT_TRUE(below.exhausted);
    }
  }
  EXPECT_GT(above_bound, 0);  // proofs that are not just sums
}

// Two of 3 at once, then one of 4 and one of 2: 6 are enough, 5 are not.
TEST(PackingSearch, StopsAtItsEffort) {
  const PackItems problem = make_pack_items({{0, 2}, {0, 3}, {2, 4}, {3, 4}}, {3, 3, 2, 4}, 1);
  EXPECT_TRUE(search(problem, 6, PlaceChoice::kTightest).offsets);
  const auto cut = search(problem, 6, PlaceChoice::kTightest, 0);
  EXPECT_FALSE(cut.offsets);
  EXPECT_FALSE(cut.exhausted);
  EXPECT_TRUE(search(problem, 5, PlaceChoice::kTightest).exhausted);
}

TEST(PackingSearch, StopsWhenAsked) {
  const Instance instance = random_instance(5, 400, 300, 1000);
  const PackItems problem = make_pack_items(instance.times, instance.bytes, 1);
  int asked = 0;
  PortfolioLimits limits;
  limits.enough = problem.lower_bound;
  limits.steps = kEndless;
  limits.stop = [&] {
    ++asked;
    return true;
  };
  const Placement stopped = pack_items(problem, limits);
  EXPECT_EQ(asked, 1);
  EXPECT_GT(stopped.arena, problem.lower_bound);
  expect_packing(problem, stopped.offsets, stopped.arena);
}

// A 100 and a 60 that meet, and eight 5s beside them: the 5s go into the gaps.
TEST(PackingLevel, SmallItemsGoIntoTheGaps) {
  std::vector<TimeRange> times = {{0, 4}, {2, 6}};
  std::vector<Bytes> bytes = {100, 60};
  for (int i = 0; i < 8; ++i) {
    times.push_back({i % 2, i % 2 + 1});
    bytes.push_back(5);
  }
  const PackItems problem = make_pack_items(times, bytes, 1);
  const Conflicts conflicts = *Conflicts::find(problem.items, kEndless);
  PackingLevel level(problem, conflicts, 60);
  EXPECT_EQ(level.size(), 2u);
  EXPECT_FALSE(level.complete());
  const auto attempt = level.pack_within(160, 0, kEndless, {});
  ASSERT_TRUE(attempt.placement);
  EXPECT_EQ(attempt.placement->arena, 160);
  expect_packing(problem, attempt.placement->offsets, 160);
  EXPECT_TRUE(level.pack_within(159, 0, kEndless, {}).exhausted);
}

TEST(PackingLevel, TheWholePortfolioReachesTheSmallestArenas) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Instance instance = random_instance(seed, 4 + static_cast<int>(seed % 4), 7, 1000);
    std::vector<schedule::Buffer> buffers;
    for (std::size_t i = 0; i < instance.times.size(); ++i) {
      // From 1 on, so that none is there for the whole step.
      buffers.push_back(
          {instance.times[i].start + 1, instance.times[i].end + 1, instance.bytes[i]});
    }
    const PackItems problem = make_pack_items(instance.times, instance.bytes, 1);
    EXPECT_EQ(pack(buffers, {.alignment = 1}).arena, smallest_arena(problem));
  }
}

}  // namespace
}  // namespace reprise::planner
