// Ranks on GPUs that fail: all others end in time, with the name of the one that failed first.

#include <nccl.h>

#include "gmock/gmock.h"

#include "tests/cuda/rank_backend.h"
#include "tests/cuda/rank_case.h"

namespace reprise::api {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace std::chrono_literals;

class CudaRankFailures : public ::testing::Test {
 protected:
  void SetUp() override { set_gpus(2); }
  void TearDown() override {
    EXPECT_THAT(faults_.all(), IsEmpty());
    set_gpus(1);
  }
  // Steps of rank 0, and of rank 1 what `body` makes of it.
  std::vector<std::string> with_rank_1(const std::function<void(Communicator&)>& body,
                                       std::chrono::milliseconds timeout) {
    return run_ranks(threads_kind(), world(2, timeout), [&](Communicator& end) {
      if (end.rank() == 0) {
        (void)run_rank(options_, 100, &end);
      } else {
        body(end);
      }
    });
  }

  const TrainOptions options_ = rank_options("mlp", 4);
  const test::cuda::CollectedFaults faults_;
};

TEST_F(CudaRankFailures, ARankThatLeavesIsNamed) {
  const auto begin = std::chrono::steady_clock::now();
  const auto thrown =
      with_rank_1([&](Communicator& end) { (void)run_rank(options_, 3, &end); }, 20s);
  EXPECT_THAT(thrown[0], HasSubstr("rank 1 failed first: it left the group"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
}

TEST_F(CudaRankFailures, ARankThatGivesUpBetweenStepsIsNamedWithItsReason) {
  const auto thrown = with_rank_1(
      [&](Communicator& end) {
        (void)run_rank(options_, 3, &end);
        end.abort("the disk is full");
      },
      20s);
  EXPECT_THAT(thrown[0], HasSubstr("rank 1 failed first: the disk is full"));
}

// Its GPU queues nothing any more, its process is alive: the others' GPUs wait for it.
TEST_F(CudaRankFailures, ARankThatNeverComesIsNamedAtTheDeadline) {
  const auto begin = std::chrono::steady_clock::now();
  const auto thrown = with_rank_1(
      [&](Communicator& end) {
        (void)run_rank(options_, 3, &end);
        std::this_thread::sleep_for(2500ms);
      },
      1500ms);
  EXPECT_THAT(thrown[0], AllOf(HasSubstr("rank 1 failed first: not at all_reduce"),
                               HasSubstr("within 1500 ms (missing: 1)")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 12s);
}

// At a poll that finds all of a step over, of the second or third step.
class FailingSums final : public OtherSums {
 public:
  using OtherSums::OtherSums;
  [[nodiscard]] bool idle() override {
    const bool idle = OtherSums::idle();
    if (rank() == 1 && idle && ++steps_ == 3) throw base::device_error("planted");
    return idle;
  }

 private:
  int steps_ = 0;
};

TEST_F(CudaRankFailures, AGpuThatFailsAtTheEndOfAStepIsNamed) {
  for (const bool recorded : {false, true}) {
    TrainOptions options = options_;
    options.session.record_steps = recorded;
    const GroupRun group = run_group_with<FailingSums>(options, 2, 100, 5s);
    EXPECT_THAT(group.thrown[1], HasSubstr("planted"));
    EXPECT_THAT(group.thrown[0], AllOf(HasSubstr("rank 1 failed first: step "),
                                       HasSubstr(", on the device: planted")));
  }
}

class RefusingSums final : public OtherSums {
 public:
  using OtherSums::OtherSums;
  void start(std::size_t number, std::span<const std::span<std::byte>> pieces,
             graph::DType type) override {
    if (rank() == 1 && ++starts_ == 3) throw base::device_error("planted");
    OtherSums::start(number, pieces, type);
  }

 private:
  int starts_ = 0;
};

TEST_F(CudaRankFailures, ARankThatFailsInTheMiddleOfAStepIsNamedWithItsNode) {
  TrainOptions options = options_;
  options.session.record_steps = false;
  const GroupRun group = run_group_with<RefusingSums>(options, 2, 100, 20s);
  EXPECT_THAT(group.thrown[1], HasSubstr("planted"));
  EXPECT_THAT(group.thrown[0],
              AllOf(HasSubstr("rank 1 failed first: step 1, node 'reduce/"), HasSubstr("planted")));
}

TEST_F(CudaRankFailures, WhatNcclSaysOfABrokenGroupIsTold) {
  test::cuda::break_communicator(1, 100, ncclRemoteError);
  const GroupRun group = run_group(options_, 2, 1000, 3s);
  EXPECT_THAT(group.thrown[1], HasSubstr("remote process exited or there was a network error"));
  EXPECT_THAT(group.thrown[0],
              AllOf(HasSubstr("rank 1 failed first: step "), HasSubstr("remote process exited")));
}

TEST_F(CudaRankFailures, WhenOneCannotJoinAllEndAndNameIt) {
  test::cuda::fail_call("ncclCommInitRankConfig", 2, ncclSystemError);
  const GroupRun group = run_group(options_, 2, 1, 20s);
  EXPECT_THAT(group.thrown, Contains(AllOf(HasSubstr("ncclCommInitRankConfig: unhandled system"),
                                           Not(HasSubstr("failed first")))));
  EXPECT_THAT(group.thrown, Contains(HasSubstr("failed first: joining the group of GPUs: nccl")));
}

TEST_F(CudaRankFailures, WhenThereIsNoGroupToJoinAllSayWhy) {
  test::cuda::fail_call("ncclGetUniqueId", 1, ncclSystemError);
  const GroupRun group = run_group(options_, 2, 1, 20s);
  EXPECT_THAT(group.thrown, Each(HasSubstr("rank 0 cannot make a group of GPUs: ncclGetUniqueId: "
                                           "unhandled system error")));
}

// Not even a recorded one, which would ask nobody; what the session holds is what it was.
TEST_F(CudaRankFailures, AGroupThatHasFailedRunsNoMoreSteps) {
  const auto thrown = run_ranks(threads_kind(), world(2, 20s), [&](Communicator& end) {
    TrainOptions options = options_;
    options.session.recoverable = true;
    RankSession rank(options, &end);
    for (int step = 0; step < 3; ++step) (void)rank.step(step);
    if (end.rank() == 1) return;
    const std::uint64_t before = rank.session().state_hash();
    const auto named = HasSubstr("rank 1 failed first");
    EXPECT_THAT(error_of([&] { (void)rank.step(3); }), named);
    const auto launches = test::cuda::counts().graph_launches;
    EXPECT_THAT(error_of([&] { (void)rank.step(3); }), named);
    EXPECT_EQ(test::cuda::counts().graph_launches, launches);
    EXPECT_EQ(rank.session().state_hash(), before);
  });
  EXPECT_THAT(thrown, Each(IsEmpty()));
}

}  // namespace
}  // namespace reprise::api
