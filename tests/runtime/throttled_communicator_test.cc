// The slow link of benchmarks: same results, at least the time that it was told, and beside it the
// caller goes on.

#include "tests/support/throttled_communicator.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/runtime/comm_group.h"

namespace reprise::runtime::comm::testing {
namespace {

using Clock = std::chrono::steady_clock;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

GroupKind throttled_kind(std::chrono::microseconds per_operation) {
  return {"throttled", [=](const CommOptions& options) -> MakeEnd {
            const MakeEnd inner = threads_kind().make(options);
            const auto arrivals = std::make_shared<Arrivals>(options.world_size);
            return [=](int rank) -> std::unique_ptr<Communicator> {
              return std::make_unique<ThrottledCommunicator>(
                  inner(rank), arrivals, [=](std::size_t) { return per_operation; });
            };
          }};
}

TEST(ThrottledCommunicator, TakesItsTimeWhileTheCallerGoesOn) {
  const auto thrown = run_ranks(throttled_kind(200ms), world(2), [](Communicator& end) {
    std::vector<float> x(5, static_cast<float>(end.rank() + 1));
    std::vector<float> y(2, 10);
    const std::vector<std::span<std::byte>> pieces{std::as_writable_bytes(std::span(x)),
                                                   std::as_writable_bytes(std::span(y))};
    end.barrier();
    const auto begin = Clock::now();
    const Ticket ticket = end.start_all_reduce_pieces(pieces, ElementType::kF32, Reduction::kSum);
    EXPECT_LT(Clock::now() - begin, 100ms);
    end.wait(ticket);
    EXPECT_GE(Clock::now() - begin, 200ms);
    EXPECT_THAT(x, Each(3.0F));
    EXPECT_THAT(y, Each(20.0F));
  });
  EXPECT_THAT(thrown, Each(IsEmpty()));
}

// Rank 1 comes 100 ms late, each time: the time of an operation counts from then.
TEST(ThrottledCommunicator, CountsFromWhenTheLastRankIsThere) {
  const auto thrown = run_ranks(throttled_kind(50ms), world(2), [](Communicator& end) {
    std::vector<float> x(5, 1);
    for (int i = 0; i < 3; ++i) {
      const auto begin = Clock::now();
      if (end.rank() == 1) std::this_thread::sleep_for(100ms);
      end.all_reduce(std::span(x));
      EXPECT_GE(Clock::now() - begin, 145ms);  // they part within a moment of each other
    }
  });
  EXPECT_THAT(thrown, Each(IsEmpty()));
}

TEST(ThrottledCommunicator, TellsOfAFailureAsTheOneBelowDoes) {
  const auto thrown = run_ranks(throttled_kind(1us), world(2), [](Communicator& end) {
    std::vector<float> x(5, 1);
    end.all_reduce(std::span(x));
    if (end.rank() == 1) return end.abort("no more");
    for (int i = 0; i < 1000; ++i) end.all_reduce(std::span(x));
  });
  EXPECT_THAT(thrown[0], HasSubstr("rank 1"));
  EXPECT_THAT(thrown[0], HasSubstr("no more"));
}

}  // namespace
}  // namespace reprise::runtime::comm::testing
