#include "planner/offsets.h"

#include <algorithm>
#include <fstream>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/error.h"

namespace reprise::planner {
namespace {

using schedule::Buffer;

// Written apart from the packer: every pair is compared.
void expect_valid(const std::vector<Buffer>& buffers, const Packing& packing, Bytes alignment) {
  ASSERT_EQ(packing.offsets.size(), buffers.size());
  Bytes arena = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].bytes == 0) continue;
    ASSERT_GE(packing.offsets[i], 0);
    ASSERT_EQ(packing.offsets[i] % alignment, 0) << "buffer " << i;
    arena = std::max(arena, packing.offsets[i] + buffers[i].bytes);
    for (std::size_t j = 0; j < i; ++j) {
      if (buffers[j].bytes == 0) continue;
      const bool in_time = buffers[i].start < buffers[j].end && buffers[j].start < buffers[i].end;
      const bool in_space = packing.offsets[i] < packing.offsets[j] + buffers[j].bytes &&
                            packing.offsets[j] < packing.offsets[i] + buffers[i].bytes;
      ASSERT_FALSE(in_time && in_space) << "buffers " << j << " and " << i;
    }
  }
  EXPECT_EQ(packing.arena, arena);
}

Bytes largest_live_sum(const std::vector<Buffer>& buffers) {
  Bytes largest = 0;
  for (const Buffer& at : buffers) {
    Bytes live = 0;
    for (const Buffer& b : buffers) {
      if (b.start <= at.start && at.start < b.end) live += b.bytes;
    }
    largest = std::max(largest, live);
  }
  return largest;
}

std::vector<Buffer> random_buffers(std::mt19937_64& random, std::size_t count, std::int64_t span,
                                   Bytes largest) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t start = draw(0, span - 1);
    const std::int64_t end =
        draw(0, 3) == 0 ? draw(start + 1, span) : std::min(span, start + draw(1, 4));
    buffers.push_back({start, end, draw(0, 12) == 0 ? 0 : draw(1, largest)});
  }
  return buffers;
}

TEST(Offsets, NothingTakesNothing) {
  const Packing packing = pack({});
  EXPECT_EQ(packing.arena, 0);
  EXPECT_EQ(packing.lower_bound, 0);
  EXPECT_EQ(packing.fragmentation(), 0);
}

TEST(Offsets, OneBufferLiesAtTheBottom) {
  const Packing packing = pack({{2, 5, 100}});
  EXPECT_EQ(packing.offsets, std::vector<Bytes>{0});
  EXPECT_EQ(packing.arena, 100);
}

TEST(Offsets, BuffersThatTouchInTimeShareBytes) {
  EXPECT_EQ(pack({{0, 2, 128}, {2, 4, 128}}).arena, 128);
}

TEST(Offsets, WholeStepBuffersLieAtTheBottomInIndexOrder) {
  const std::vector<Buffer> buffers = {
      {3, 5, 640}, {0, 9, 10}, {0, 4, 64}, {0, 9, 100}, {1, 9, 64}};
  const Packing packing = pack(buffers);
  EXPECT_EQ(packing.offsets[1], 0);
  EXPECT_EQ(packing.offsets[3], 64);
  expect_valid(buffers, packing, 64);
  EXPECT_GE(packing.offsets[0], 192);  // 64 + 128: above both
}

TEST(Offsets, EveryOffsetIsAligned) {
  const std::vector<Buffer> buffers = {{0, 2, 1}, {1, 3, 65}, {0, 4, 3}, {2, 4, 130}, {1, 2, 64}};
  for (Bytes alignment : {1, 8, 64, 4096}) {
    expect_valid(buffers, pack(buffers, {.alignment = alignment}), alignment);
  }
}

TEST(Offsets, ZeroByteBuffersConflictWithNothing) {
  const std::vector<Buffer> buffers = {{0, 4, 64}, {1, 1, 0}, {0, 9, 0}, {4, 9, 64}};
  const Packing packing = pack(buffers);
  expect_valid(buffers, packing, 64);
  EXPECT_EQ(packing.arena, 64);
}

TEST(Offsets, RefusesNegativeSizesAndEmptyLifetimesByNumber) {
  try {
    (void)pack({{0, 1, 4}, {0, 1, -4}});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInput);
    EXPECT_NE(std::string(error.what()).find("buffer 1 has -4 bytes"), std::string::npos);
  }
  EXPECT_THROW((void)pack({{3, 3, 4}}), base::Error);
  EXPECT_THROW((void)pack({{0, 1, 4}}, {.alignment = 48}), base::Error);
}

// A[0,1] B[0,3] C[0,1] of 4 MiB, D[2,3] of 8 MiB, closed ranges. With B between A and C the 8 MiB
// have no hole and 16 MiB are needed; with B at one end A + C = 8 make the hole: 12 MiB.
TEST(Offsets, LeavesAHoleForTheBufferThatComesLater) {
  const std::vector<Buffer> buffers = {
      {0, 2, 4 << 20}, {0, 4, 4 << 20}, {0, 2, 4 << 20}, {2, 4, 8 << 20}};
  for (std::int64_t nodes : {0, 20'000}) {
    const Packing packing = pack(buffers, {.search_nodes = nodes});
    expect_valid(buffers, packing, 64);
    EXPECT_EQ(packing.arena, 12 << 20);
    EXPECT_EQ(packing.fragmentation(), 0);
  }
}

TEST(Offsets, RandomSetsNeverOverlapAndReportTheLiveSum) {
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto buffers =
        random_buffers(random, 1 + seed % 40, 1 + static_cast<std::int64_t>(seed % 23), 1000);
    const Bytes alignment = seed % 3 == 0 ? 64 : 1;
    const Packing packing = pack(buffers, {.alignment = alignment, .search_nodes = 500});
    expect_valid(buffers, packing, alignment);
    ASSERT_EQ(packing.lower_bound, largest_live_sum(buffers));
    ASSERT_GE(packing.arena, packing.lower_bound);
    if (alignment == 1) worst = std::max(worst, packing.fragmentation());
  }
  EXPECT_LT(worst, 0.3);
}

TEST(Offsets, ThousandsOfHolesAreHandled) {
  std::mt19937_64 random(7);
  const auto buffers = random_buffers(random, 4000, 2000, 100'000);
  const Packing packing = pack(buffers);
  expect_valid(buffers, packing, 64);
  EXPECT_LT(packing.fragmentation(), 0.5);
}

TEST(Offsets, NestedLifetimesOfManyBuffersPackWithoutAHole) {
  // Kept activations: written in turn, freed in reverse; 50,000 of them meet each other.
  std::vector<Buffer> buffers;
  const std::int64_t count = 50'000;
  for (std::int64_t i = 0; i < count; ++i) {
    buffers.push_back({i, 2 * count - i, 64 * (1 + i * 7919 % 13)});
  }
  EXPECT_EQ(pack(buffers).fragmentation(), 0);
}

TEST(Offsets, SameBuffersSameOffsets) {
  std::mt19937_64 random(3);
  const auto buffers = random_buffers(random, 300, 100, 5000);
  EXPECT_EQ(pack(buffers).offsets, pack(buffers).offsets);
}

TEST(Offsets, KnownSmallestArenasAreReached) {
  std::ifstream file(REPRISE_TEST_DATA "/arenas.json");
  const nlohmann::json data = nlohmann::json::parse(file);
  ASSERT_FALSE(data.at("arenas").empty());
  for (const auto& arena : data.at("arenas")) {
    SCOPED_TRACE(arena.at("id").get<std::string>());
    std::vector<Buffer> buffers;
    for (const auto& b : arena.at("buffers")) {
      buffers.push_back({b.at("start"), b.at("end"), b.at("bytes")});
    }
    const Bytes alignment = arena.at("alignment");
    const Packing packing = pack(buffers, {.alignment = alignment});
    expect_valid(buffers, packing, alignment);
    EXPECT_EQ(packing.lower_bound, arena.at("lower_bound").get<Bytes>());
    EXPECT_EQ(packing.arena, arena.at("optimum").get<Bytes>());
  }
}

}  // namespace
}  // namespace reprise::planner
