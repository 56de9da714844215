// The double keeps the order of streams and events, and no other.

#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <vector>

#include "tests/cuda/double/control.h"
#include "tests/cuda/double/operation.h"

namespace reprise::test::cuda {
namespace {

class DoubleStreams : public ::testing::Test {
 protected:
  void SetUp() override {
    reset();
    ASSERT_EQ(cudaStreamCreateWithFlags(&first_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&second_, cudaStreamNonBlocking), cudaSuccess);
  }
  // A kernel that notes that it ran.
  void note(cudaStream_t stream, int what) {
    ASSERT_EQ(enqueue(stream, "note", {}, [this, what] { ran_.push_back(what); }), cudaSuccess);
  }
  cudaStream_t first_ = nullptr;
  cudaStream_t second_ = nullptr;
  std::vector<int> ran_;
};

TEST_F(DoubleStreams, NothingRunsBeforeSomebodyWaits) {
  set_policy(Policy::kStarve);
  note(first_, 1);
  note(first_, 2);
  EXPECT_TRUE(ran_.empty());
  ASSERT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_EQ(ran_, (std::vector<int>{1, 2}));
}

TEST_F(DoubleStreams, EagerRunsAtOnce) {
  set_policy(Policy::kEager);
  note(first_, 1);
  EXPECT_EQ(ran_, (std::vector<int>{1}));
}

TEST_F(DoubleStreams, StarveRunsOnlyWhatIsWaitedFor) {
  set_policy(Policy::kStarve);
  note(first_, 1);
  note(second_, 2);
  ASSERT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
  EXPECT_EQ(ran_, (std::vector<int>{2}));
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(ran_, (std::vector<int>{2, 1}));
}

TEST_F(DoubleStreams, OthersFirstRunsEverythingElseBefore) {
  set_policy(Policy::kOthersFirst);
  note(second_, 2);
  note(first_, 1);
  note(first_, 3);
  ASSERT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
  EXPECT_EQ(ran_, (std::vector<int>{1, 3, 2}));
}

TEST_F(DoubleStreams, RandomOrdersDifferAndASeedGivesOneOfThem) {
  const auto order = [&](std::uint64_t seed) {
    set_policy(Policy::kRandom, seed);
    ran_.clear();
    for (int i = 0; i < 4; ++i) note(i % 2 == 0 ? first_ : second_, i);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return ran_;
  };
  EXPECT_EQ(order(7), order(7));
  bool differs = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) differs |= order(seed) != order(seed + 1);
  EXPECT_TRUE(differs);
}

TEST_F(DoubleStreams, AnEventOrdersTwoStreams) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  for (const Policy policy : {Policy::kRandom, Policy::kStarve, Policy::kOthersFirst}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      set_policy(policy, seed);
      ran_.clear();
      note(first_, 1);
      ASSERT_EQ(cudaEventRecord(event, first_), cudaSuccess);
      ASSERT_EQ(cudaStreamWaitEvent(second_, event, 0), cudaSuccess);
      note(second_, 2);
      ASSERT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
      EXPECT_EQ(ran_, (std::vector<int>{1, 2})) << to_string(policy) << " seed " << seed;
    }
  }
}

TEST_F(DoubleStreams, PollingAnEventLetsTimePass) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  for (const Policy policy : {Policy::kRandom, Policy::kStarve, Policy::kOthersFirst}) {
    set_policy(policy);
    for (int i = 0; i < 5; ++i) note(first_, i);
    ASSERT_EQ(cudaEventRecord(event, first_), cudaSuccess);
    int polls = 0;
    while (cudaEventQuery(event) == cudaErrorNotReady) ASSERT_LT(++polls, 1000);
  }
  EXPECT_EQ(ran_.size(), 15U);
}

TEST_F(DoubleStreams, TheDefaultStreamTakesTurnsWithBlockingStreamsOnly) {
  set_policy(Policy::kStarve);
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  note(first_, 1);
  note(blocking, 2);
  note(nullptr, 3);
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(ran_, (std::vector<int>{2, 3}));
}

TEST_F(DoubleStreams, TimeBetweenEventsIsThatOfTheWorkBetween) {
  cudaEvent_t begin = nullptr, end = nullptr;
  ASSERT_EQ(cudaEventCreate(&begin), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(begin, first_), cudaSuccess);
  for (int i = 0; i < 3; ++i) note(first_, i);  // 2 us each
  ASSERT_EQ(cudaEventRecord(end, first_), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  float milliseconds = 0;
  ASSERT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_NEAR(milliseconds, 0.006, 1e-6);
}

}  // namespace
}  // namespace reprise::test::cuda
