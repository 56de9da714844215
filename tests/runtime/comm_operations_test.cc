// Every communicator gives the same answers: the values, their bits, and errors for wrong calls.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/runtime/comm_kinds.h"

namespace reprise::runtime::comm::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Communicators : public ::testing::TestWithParam<GroupKind> {
 protected:
  void all_end_well(int size, const std::function<void(Communicator&)>& body) const {
    EXPECT_THAT(run_ranks(GetParam(), world(size), body), Each(IsEmpty()));
  }
};

INSTANTIATE_TEST_SUITE_P(All, Communicators, ::testing::ValuesIn(group_kinds()),
                         [](const auto& kind) { return kind.param.name; });

// C40: the sum of [1,2,3] and [3,4,5] is [4,6,8]; the mean is the caller's, [2,3,4].
TEST_P(Communicators, AddUpWhatTheRanksHave) {
  all_end_well(2, [](Communicator& end) {
    std::vector<float> x{1, 2, 3};
    if (end.rank() == 1) x = {3, 4, 5};
    end.all_reduce(std::span(x));
    EXPECT_THAT(x, ElementsAre(4, 6, 8));
  });
}

TEST_P(Communicators, SayWhetherAnOperationIsOver) {
  std::atomic<bool> may_come{false};
  all_end_well(2, [&](Communicator& end) {
    std::vector<float> x{1};
    while (end.rank() == 1 && !may_come) std::this_thread::yield();
    const Ticket sum = end.start_all_reduce(std::as_writable_bytes(std::span(x)), ElementType::kF32,
                                            Reduction::kSum);
    if (end.rank() == 0) {
      EXPECT_FALSE(end.done(sum));  // the other one has not come
      may_come = true;
    }
    while (!end.done(sum)) std::this_thread::yield();
    EXPECT_THAT(x, ElementsAre(2));
    end.wait(sum);
    EXPECT_TRUE(end.done(sum));
    EXPECT_THROW((void)end.done({sum.sequence + 1}), base::Error);
  });
}

// C40: sizes around what a part, a block or a segment holds, more ranks than elements, none at all.
TEST_P(Communicators, AddUpTensorsOfEverySize) {
  for (const int size : {1, 2, 3, 4}) {
    all_end_well(size, [&](Communicator& end) {
      for (const std::size_t count : {0u, 1u, 2u, 7u, 1024u, 65537u, 1000000u}) {
        std::vector<float> x(count);
        for (std::size_t i = 0; i < count; ++i)
          x[i] = static_cast<float>(i % 1000) + static_cast<float>(end.rank());
        end.all_reduce(std::span(x));
        const int of_ranks = size * (size - 1) / 2;  // 0 + 1 + ...
        const auto offset = static_cast<float>(of_ranks);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i)
          wrong += x[i] != static_cast<float>(size) * static_cast<float>(i % 1000) + offset;
        EXPECT_EQ(wrong, 0u) << count << " elements, " << size << " ranks";
      }
    });
  }
}

template <class T>
void check_type(Communicator& end) {
  const auto mine = static_cast<T>(end.rank() + 1);
  std::vector<T> sum{mine, static_cast<T>(10 * mine)}, most = sum, least = sum;
  end.all_reduce(std::span(sum));
  end.all_reduce(std::span(most), Reduction::kMax);
  end.all_reduce(std::span(least), Reduction::kMin);
  EXPECT_THAT(sum, ElementsAre(6, 60)) << element_name(kElementOf<T>);  // 1 + 2 + 3
  EXPECT_THAT(most, ElementsAre(3, 30));
  EXPECT_THAT(least, ElementsAre(1, 10));
}

TEST_P(Communicators, KnowFiveElementTypesAndThreeReductions) {
  all_end_well(3, [](Communicator& end) {
    check_type<float>(end);
    check_type<double>(end);
    check_type<std::int32_t>(end);
    check_type<std::int64_t>(end);
    check_type<std::uint64_t>(end);
  });
}

// A maximum is how ranks tell each other that one has a NaN; it must not get lost on the way.
TEST_P(Communicators, ANanOnAnyRankIsTheMaximumAndTheMinimum) {
  for (int sick = 0; sick < 3; ++sick) {
    all_end_well(3, [&](Communicator& end) {
      const float mine = end.rank() == sick ? std::numeric_limits<float>::quiet_NaN()
                                            : static_cast<float>(end.rank());
      std::vector<float> most{mine}, least{mine};
      end.all_reduce(std::span(most), Reduction::kMax);
      end.all_reduce(std::span(least), Reduction::kMin);
      EXPECT_TRUE(std::isnan(most[0]) && std::isnan(least[0])) << "on rank " << sick;
    });
  }
}

// Random values of very different sizes, so that another order gives other bits.
std::vector<float> uneven_values(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 7);
  std::vector<float> values(count);
  for (float& value : values)
    value =
        std::ldexp(static_cast<float>(random() % 2001) - 1000.0F, static_cast<int>(random() % 30));
  return values;
}

// C07: (x0 + x1) + x2, whatever the bucket and whoever is late.
TEST_P(Communicators, BitsAreThoseOfTheRankOrderWhateverTheBuckets) {
  constexpr std::size_t kCount = 300001;
  std::vector<float> right = uneven_values(0, kCount);
  for (int rank = 1; rank < 3; ++rank) {
    const auto more = uneven_values(rank, kCount);
    for (std::size_t i = 0; i < kCount; ++i) right[i] += more[i];
  }
  for (const std::size_t bucket : {std::size_t{1000}, std::size_t{77777}, kCount}) {
    all_end_well(3, [&](Communicator& end) {
      std::vector<float> x = uneven_values(end.rank(), kCount);
      if (end.rank() == 1) std::this_thread::sleep_for(2ms);
      for (std::size_t at = 0; at < kCount; at += bucket)
        end.all_reduce(std::span(x).subspan(at, std::min(bucket, kCount - at)));
      const bool same = std::equal(x.begin(), x.end(), right.begin(), [](float a, float b) {
        return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
      });
      EXPECT_TRUE(same) << bucket;
    });
  }
}

// A bucket: pieces of every size that lie anywhere, around what a segment holds, in one operation.
TEST_P(Communicators, PiecesInOneOperationAreAddedUpLikeOneTensor) {
  for (const int size : {1, 2, 3}) {
    for (const std::vector<std::size_t>& sizes :
         {std::vector<std::size_t>{3, 0, 1, 70000, 2, 300001, 5},
          {1, 1},
          {0, 0},
          {65536, 131072},
          std::vector<std::size_t>(500, 1000)}) {
      const std::size_t all = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
      std::vector<float> right = uneven_values(0, all);
      for (int rank = 1; rank < size; ++rank) {
        const auto more = uneven_values(rank, all);
        for (std::size_t i = 0; i < all; ++i) right[i] += more[i];
      }
      all_end_well(size, [&](Communicator& end) {
        end.barrier();  // an operation of no bytes asks nobody, so a rank could leave too early
        const std::vector<float> mine = uneven_values(end.rank(), all);
        std::vector<std::vector<float>> parts;
        std::vector<std::span<std::byte>> pieces;
        std::size_t at = 0;
        for (const std::size_t count : sizes) {
          const auto from = mine.begin() + static_cast<std::ptrdiff_t>(at);
          parts.emplace_back(from, from + static_cast<std::ptrdiff_t>(count));
          at += count;
        }
        for (auto& part : parts) pieces.push_back(std::as_writable_bytes(std::span(part)));
        end.wait(end.start_all_reduce_pieces(pieces, ElementType::kF32, Reduction::kSum));
        std::vector<float> got;
        for (const auto& part : parts) got.insert(got.end(), part.begin(), part.end());
        ASSERT_EQ(got.size(), right.size());
        EXPECT_TRUE(std::equal(got.begin(), got.end(), right.begin())) << size << " ranks";
      });
    }
  }
}

TEST_P(Communicators, OperationsOfPiecesAndOfOneTensorMayFollowEachOther) {
  all_end_well(2, [](Communicator& end) {
    std::vector<float> a(3, 1), b(200000, 2), c(5, 3);
    const std::vector<std::span<std::byte>> pieces{std::as_writable_bytes(std::span(a)),
                                                   std::as_writable_bytes(std::span(b))};
    for (int i = 0; i < 20; ++i) {
      const auto first = end.start_all_reduce_pieces(pieces, ElementType::kF32, Reduction::kMax);
      const auto second = end.start_all_reduce(std::as_writable_bytes(std::span(c)),
                                               ElementType::kF32, Reduction::kSum);
      end.wait(first);
      end.wait(second);
    }
    EXPECT_THAT(a, Each(1.0F));
    EXPECT_THAT(b, Each(2.0F));
    EXPECT_THAT(c, Each(3.0F * 1048576.0F));  // doubled 20 times
  });
}

// Each operation is told once, in order, and has ended when its wait() returns.
TEST_P(Communicators, AWatchIsToldOfEachOperation) {
  all_end_well(2, [](Communicator& end) {
    std::vector<OperationRun> runs;
    end.set_watch([&](const OperationRun& run) { runs.push_back(run); });
    std::vector<float> x(1000, 1);
    for (int i = 0; i < 3; ++i) end.all_reduce(std::span(x));
    end.set_watch({});
    end.barrier();
    ASSERT_EQ(runs.size(), 3u);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      EXPECT_EQ(runs[i].sequence, i + 1);
      EXPECT_LE(runs[i].begin, runs[i].end);
      EXPECT_LE(i == 0 ? runs[i].begin : runs[i - 1].end, runs[i].begin);
    }
  });
}

// C07: 1e8, 1 and -1e8 on three ranks: in the order of the ranks the 1 is lost on all of them.
TEST_P(Communicators, CancellationGivesTheSameBitsOnAllRanks) {
  all_end_well(3, [](Communicator& end) {
    const float values[] = {1e8F, 1.0F, -1e8F};
    std::vector<float> x(9, values[end.rank()]);
    end.all_reduce(std::span(x));
    EXPECT_THAT(x, Each(0.0F));
  });
}

// C38: delays on one rank or the other never pair operations wrongly.
TEST_P(Communicators, OperationsPairUpByOrderWhateverTheDelays) {
  all_end_well(2, [](Communicator& end) {
    std::mt19937 random(static_cast<unsigned>(end.rank()));
    for (int i = 0; i < 100; ++i) {
      std::vector<float> g1(4, end.rank() == 0 ? 1.0F : 3.0F);
      std::vector<float> g2(4, end.rank() == 0 ? 10.0F : 30.0F);
      if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      const auto first = end.start_all_reduce(std::as_writable_bytes(std::span(g1)),
                                              ElementType::kF32, Reduction::kSum);
      if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      const auto second = end.start_all_reduce(std::as_writable_bytes(std::span(g2)),
                                               ElementType::kF32, Reduction::kSum);
      end.wait(second);
      end.wait(first);
      EXPECT_THAT(g1, Each(4.0F));
      EXPECT_THAT(g2, Each(40.0F));
    }
  });
}

TEST_P(Communicators, BroadcastGivesEveryRankTheRootsBytes) {
  for (int root = 0; root < 3; ++root) {
    all_end_well(3, [&](Communicator& end) {
      for (const std::size_t size : {0u, 1u, 100000u}) {
        std::vector<std::byte> bytes(size, static_cast<std::byte>(end.rank()));
        end.broadcast(bytes, root);
        EXPECT_THAT(bytes, Each(static_cast<std::byte>(root)));
      }
    });
  }
}

TEST_P(Communicators, AllGatherKeepsRanksApart) {
  for (const int size : {1, 3}) {
    all_end_well(size, [&](Communicator& end) {
      const std::string mine(static_cast<std::size_t>(end.rank()) * 1000,
                             'x');  // rank 0's is empty
      const auto all = end.all_gather(mine);
      ASSERT_EQ(all.size(), static_cast<std::size_t>(size));
      for (int rank = 0; rank < size; ++rank)
        EXPECT_EQ(all[static_cast<std::size_t>(rank)].size(),
                  static_cast<std::size_t>(rank) * 1000);
    });
  }
}

TEST_P(Communicators, NobodyPassesABarrierBeforeAllAreThere) {
  std::atomic<int> arrived{0};
  all_end_well(3, [&](Communicator& end) {
    for (int round = 1; round <= 20; ++round) {
      ++arrived;
      end.barrier();
      EXPECT_GE(arrived.load(), 3 * round);
    }
  });
}

TEST_P(Communicators, RefuseWrongArgumentsAndGoOn) {
  all_end_well(2, [](Communicator& end) {
    std::vector<std::byte> seven(7);
    EXPECT_THROW((void)end.start_all_reduce(seven, ElementType::kF32, Reduction::kSum),
                 base::Error);
    const std::vector<std::span<std::byte>> pieces{std::span(seven).first(4), seven};
    EXPECT_THROW((void)end.start_all_reduce_pieces(pieces, ElementType::kF32, Reduction::kSum),
                 base::Error);
    EXPECT_THROW(end.broadcast(seven, 2), base::Error);
    EXPECT_THROW(end.wait({99}), base::Error);
    std::vector<double> x{1};
    end.all_reduce(std::span(x));
    EXPECT_EQ(x[0], 2);
  });
}

}  // namespace
}  // namespace reprise::runtime::comm::testing
