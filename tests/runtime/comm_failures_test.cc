// A rank that throws, leaves, is late or calls something else: all others end, soon, and say who.

#include <atomic>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "runtime/comm/membership.h"
#include "tests/runtime/comm_kinds.h"

namespace reprise::runtime::comm::testing {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class CommunicatorFailures : public ::testing::TestWithParam<GroupKind> {};
INSTANTIATE_TEST_SUITE_P(All, CommunicatorFailures, ::testing::ValuesIn(group_kinds()),
                         [](const auto& kind) { return kind.param.name; });

void reduce_forever(Communicator& end) {
  std::vector<float> x(50000, 1.0F);
  while (true) end.all_reduce(std::span(x));
}

TEST_P(CommunicatorFailures, ARankThatGivesUpIsNamedByAllOthersAtOnce) {
  for (int culprit = 0; culprit < 3; ++culprit) {
    const auto begin = Clock::now();
    const auto thrown = run_ranks(GetParam(), world(3, 60s), [&](Communicator& end) {
      if (end.rank() != culprit) reduce_forever(end);
      std::vector<float> x(50000, 1.0F);
      for (int i = 0; i < 3; ++i) end.all_reduce(std::span(x));
      end.abort("node 'conv1': out of memory");
    });
    EXPECT_LT(Clock::now() - begin, 20s);  // far below the deadline of 60 s
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == culprit) continue;
      EXPECT_THAT(
          thrown[static_cast<std::size_t>(rank)],
          HasSubstr(fmt::format("rank {} failed first: node 'conv1': out of memory", culprit)));
    }
  }
}

TEST_P(CommunicatorFailures, AFailureIsFinal) {
  (void)run_ranks(GetParam(), world(2), [](Communicator& end) {
    if (end.rank() == 1) return end.abort("no more");
    EXPECT_THROW(reduce_forever(end), CommError);
    EXPECT_THROW(end.barrier(), CommError);
    try {
      (void)end.all_gather("x");
      ADD_FAILURE() << "went on";
    } catch (const CommError& error) {
      EXPECT_EQ(error.rank(), 0);
      EXPECT_EQ(error.failure(), (Failure{1, "no more"}));
    }
  });
}

// As a rank finds out that waits for something else than an operation.
TEST_P(CommunicatorFailures, AreKnownBetweenOperationsToo) {
  std::atomic<bool> may_fail{false};
  const auto thrown = run_ranks(GetParam(), world(2, 60s), [&](Communicator& end) {
    end.check("at rest");  // nobody has failed
    if (end.rank() == 1) {
      while (!may_fail) std::this_thread::yield();
      return end.abort("no more");
    }
    may_fail = true;
    const auto begin = Clock::now();
    while (Clock::now() - begin < 20s) {
      try {
        end.check("at rest");
      } catch (const CommError& error) {
        EXPECT_EQ(error.operation(), "at rest");
        EXPECT_EQ(error.failure(), (Failure{1, "no more"}));
        EXPECT_THROW(end.barrier(), CommError);
        return;
      }
      std::this_thread::yield();
    }
    ADD_FAILURE() << "never heard of it";
  });
  EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
}

TEST_P(CommunicatorFailures, ARankThatLeavesIsNamed) {
  const auto thrown = run_ranks(GetParam(), world(3), [](Communicator& end) {
    end.barrier();
    if (end.rank() != 1) reduce_forever(end);
  });
  EXPECT_THAT(thrown[0], HasSubstr("rank 1"));
  EXPECT_THAT(thrown[0], HasSubstr("left the group"));
  EXPECT_THAT(thrown[2], HasSubstr("rank 1"));
}

TEST_P(CommunicatorFailures, ALateRankIsNamedAtTheDeadline) {
  const auto begin = Clock::now();
  const auto thrown = run_ranks(GetParam(), world(3, 1500ms), [](Communicator& end) {
    end.barrier();
    if (end.rank() == 2) std::this_thread::sleep_for(4s);
    end.barrier();
  });
  EXPECT_GE(Clock::now() - begin, 1500ms);
  for (const std::size_t rank : {0u, 1u})
    EXPECT_THAT(thrown[rank], HasSubstr("rank 2 failed first"));
}

TEST_P(CommunicatorFailures, DifferentCallsAreAnErrorAndNotASum) {
  const auto thrown = run_ranks(GetParam(), world(2, 3s), [](Communicator& end) {
    std::vector<float> x(end.rank() == 0 ? 4 : 8, 1.0F);
    end.all_reduce(std::span(x));
  });
  for (const std::string& each : thrown) {
    EXPECT_THAT(each, HasSubstr("all_reduce 1 (f32 x 4, sum)"));
    EXPECT_THAT(each, HasSubstr("all_reduce 1 (f32 x 8, sum)"));
  }
}

TEST_P(CommunicatorFailures, DestroyingWithAnOperationUnderWayEndsIt) {
  const auto thrown = run_ranks(GetParam(), world(2), [](Communicator& end) {
    static std::vector<float> x(1000, 1.0F);  // outlives the communicator
    if (end.rank() == 1) std::this_thread::sleep_for(300ms);
    if (end.rank() == 0) {
      (void)end.start_all_reduce(std::as_writable_bytes(std::span(x)), ElementType::kF32,
                                 Reduction::kSum);
      return;  // without wait()
    }
    std::vector<float> y(1000, 1.0F);
    end.all_reduce(std::span(y));
    end.barrier();
  });
  EXPECT_THAT(thrown[1], HasSubstr("rank 0"));
}

// Gloo would wait for its connections five times the time-out, and hear of nothing.
TEST(GlooFailures, ARankThatGivesUpWhileOthersConnectEndsThemAtOnce) {
  if (!has_gloo()) GTEST_SKIP() << "this build has no Gloo";
  Socket listening = listen_at({"127.0.0.1", 0, "a test"});
  const Endpoint store{"127.0.0.1", local_port(listening), "a test"};
  std::thread other([&] {
    Membership joins_only(
        {.job = "test", .rank = 1, .world_size = 2, .store = store, .timeout = 60s});
    std::this_thread::sleep_for(300ms);
    joins_only.fail("disk on fire");
  });
  GlooOptions options{.environment = {.world_size = 2,
                                      .master_address = store.host,
                                      .store_port = store.port,
                                      .store_port_origin = "a test",
                                      .job = "test"},
                      .timeout = 60s,
                      .variables = [](const char*) { return nullptr; },
                      .store_socket = listening.release()};
  std::atomic<int> told{0};
  options.failed = [&](const Failure& failure) {
    EXPECT_EQ(failure, (Failure{1, "disk on fire"}));
    ++told;
  };
  const auto begin = Clock::now();
  try {
    (void)make_gloo_communicator(options);
    ADD_FAILURE() << "connected";
  } catch (const CommError& error) {
    EXPECT_EQ(error.operation(), "connecting");
    EXPECT_EQ(error.failure(), (Failure{1, "disk on fire"}));
  }
  EXPECT_LT(Clock::now() - begin, 20s);
  EXPECT_EQ(told, 1);
  other.join();
}

}  // namespace
}  // namespace reprise::runtime::comm::testing
