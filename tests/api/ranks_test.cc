// Several ranks on one global batch: the losses and parameters of one rank that has it all, the
// same bits on all ranks, and no way to go on after one has failed.

#include <cmath>
#include <map>
#include <mutex>

#include "gmock/gmock.h"

#include "api/replicas.h"
#include "api/shard.h"
#include "api/trainer.h"
#include "tests/api/small_run.h"
#include "tests/api/training_case.h"
#include "tests/runtime/comm_kinds.h"

namespace reprise::api {
namespace {

using runtime::comm::Communicator;
using runtime::comm::testing::group_kinds;
using runtime::comm::testing::GroupKind;
using runtime::comm::testing::run_ranks;
using runtime::comm::testing::threads_kind;
using runtime::comm::testing::world;
using ::testing::HasSubstr;

std::shared_ptr<Communicator> borrowed(Communicator& end) {
  return {&end, [](Communicator*) {}};
}

// What train() reports on each rank.
std::map<int, TrainReport> train_ranks(const GroupKind& kind, int size,
                                       const TrainOptions& options) {
  std::map<int, TrainReport> reports;
  std::mutex mutex;
  const auto thrown = run_ranks(kind, world(size), [&](Communicator& end) {
    TrainOptions mine = options;
    mine.session.ranks = borrowed(end);
    auto outcome = train(mine);
    const std::lock_guard lock(mutex);
    reports[end.rank()] = std::get<TrainReport>(std::move(outcome));
  });
  EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
  return reports;
}

TrainReport train_alone(const TrainOptions& options) {
  return std::get<TrainReport>(train(options));
}

void expect_close(const std::vector<float>& got, const std::vector<float>& wanted,
                  double relative) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], relative * std::abs(wanted[i])) << "step " << i;
}

TrainOptions mlp(std::int64_t batch, const std::string& device = "reference") {
  TrainOptions options = small_mlp_run(batch, 3);
  options.optimizer = graph::SgdAttributes{.rate = {.base = 0.5}, .momentum = 0.9};
  options.session = on(device, "keep_all");
  options.steps = 6;
  return options;
}

TrainOptions lstm(std::int64_t batch) {
  TrainOptions options = mlp(batch);
  options.model = "lstm";
  options.model_options = {
      .batch = batch, .hidden = 6, .layers = 1, .vocabulary = 11, .seq_len = 6, .chunk = 3};
  return options;
}

// Global batches of 30, 10, 7 and 1 over 2, 3 and 4 ranks: parts that are equal, uneven and empty
// (1 over 2: one item and none).
TEST(Ranks, LossesAreThoseOfOneRankWhateverTheParts) {
  for (const std::int64_t batch : {30, 10, 7, 1}) {
    const TrainReport alone = train_alone(mlp(batch));
    for (const int size : {2, 3, 4}) {
      SCOPED_TRACE(fmt::format("batch {} over {} ranks", batch, size));
      for (const auto& [rank, report] : train_ranks(threads_kind(), size, mlp(batch))) {
        expect_close(report.losses, alone.losses, 1e-5);
        EXPECT_EQ(report.world_size, size);
      }
    }
  }
}

TEST(Ranks, CarriedStateAndTokensAreThoseOfOneRank) {
  for (const std::int64_t batch : {4, 5}) {
    const TrainReport alone = train_alone(lstm(batch));
    for (const int size : {2, 3}) {
      SCOPED_TRACE(fmt::format("batch {} over {} ranks", batch, size));
      for (const auto& [rank, report] : train_ranks(threads_kind(), size, lstm(batch)))
        expect_close(report.losses, alone.losses, 1e-5);
    }
  }
}

TEST(Ranks, OnTheCpuBackendToo) {
  const TrainReport alone = train_alone(mlp(10, "cpu"));
  for (const auto& [rank, report] : train_ranks(threads_kind(), 3, mlp(10, "cpu")))
    expect_close(report.losses, alone.losses, 1e-5);
}

// The communicator adds up in the order of the ranks: threads and processes give the same bits, and
// recomputation changes none of them.
TEST(Ranks, BitsDependNeitherOnTheCommunicatorNorOnTheBudget) {
  TrainOptions options = mlp(301, "cpu");  // activations outweigh the weights
  options.model_options.layers = 8;
  options.model_options.hidden = 16;
  const auto wanted = train_ranks(threads_kind(), 3, options);
  for (const GroupKind& kind : group_kinds()) {
    TrainOptions tight = options;
    tight.session = on("cpu", "auto", {.kind = Budget::Kind::kFloor});
    const auto got = train_ranks(kind, 3, tight);
    EXPECT_LT(got.at(0).plan.peak_bytes, wanted.at(0).plan.peak_bytes);
    for (const auto& [rank, report] : got) {
      EXPECT_EQ(report.losses, wanted.at(0).losses) << kind.name << ", rank " << rank;
      EXPECT_EQ(report.state_hash, wanted.at(0).state_hash);
    }
  }
}

// Weights of the mlp: 16 x 8, 8 x 8 twice, 8 x 3 and their biases: eight gradients. One operation
// for each, two for each, all in one.
TEST(Ranks, BitsDoNotDependOnBuckets) {
  for (const GroupKind& kind : group_kinds()) {
    std::optional<std::uint64_t> hash;
    for (const Bytes bucket : {Bytes{1}, Bytes{300}, Bytes{1} << 20}) {
      TrainOptions options = mlp(30, "cpu");
      options.session.bucket_bytes = bucket;
      for (const auto& [rank, report] : train_ranks(kind, 3, options)) {
        EXPECT_EQ(report.state_hash, hash.value_or(report.state_hash)) << kind.name << bucket;
        hash = report.state_hash;
      }
    }
  }
}

TEST(Ranks, DifferentBucketsAreRefused) {
  const auto thrown = run_ranks(threads_kind(), world(2), [&](Communicator& end) {
    TrainOptions options = mlp(8);
    options.session.bucket_bytes = end.rank() == 0 ? 1 << 20 : 2 << 20;
    options.session.ranks = borrowed(end);
    (void)train(options);
  });
  for (const std::string& each : thrown) EXPECT_THAT(each, HasSubstr("another plan"));
}

// C36: w = 1, loss = mean((w x - 0)^2) over x = 1, 2, 3; the gradient is 2 * 14 / 3 whatever the
// parts. Means of means would give 2 * 5.75 for [1,2] and [3].
TEST(Ranks, TheGradientIsThatOfTheGlobalMeanAndNotAMeanOfMeans) {
  graph::Builder b("square");
  const auto x = b.input("x", {2, 1});
  const auto w = b.parameter("w", {1, 1});
  b.set_loss(b.mean_squared_error(b.matmul(x, w), b.input("zero", {2, 1}), graph::Reduction::kSum));
  models::Model model{.graph = b.finish(), .initializers = {{"w", {Kind::kOnes, 0}}}};
  std::vector<float> after(2);
  const auto thrown = run_ranks(threads_kind(), world(2), [&](Communicator& end) {
    SessionOptions options = on("reference");
    options.ranks = borrowed(end);
    const auto session = make_session(
        model, options, {.optimizer = graph::SgdAttributes{.rate = {.base = 1.0}, .momentum = 0}});
    const std::vector<float> mine =
        end.rank() == 0 ? std::vector<float>{1, 2} : std::vector<float>{3, 0};
    session->set_input("x", bytes_of(mine));
    session->set_input("zero", bytes_of(std::vector<float>{0, 0}));
    session->set_gradient_weight(1.0F / 3.0F);
    (void)session->step();
    after[static_cast<std::size_t>(end.rank())] = numbers(session->read("w"))[0];
  });
  EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
  for (const float each : after) EXPECT_NEAR(each, 1.0 - 2.0 * 14.0 / 3.0, 1e-6);
}

// C44: another seed on each rank, and still rank 0's parameters on all.
TEST(Ranks, AllStartFromTheFirstRanksValues) {
  std::vector<std::uint64_t> hashes(3);
  const auto thrown = run_ranks(threads_kind(), world(3), [&](Communicator& end) {
    SessionOptions options = on("reference");
    options.seed = 100 + static_cast<std::uint64_t>(end.rank());
    options.ranks = borrowed(end);
    const auto session = make_session(
        models::make_model("mlp", models::complete_options("mlp", mlp(4).model_options)), options,
        {});
    hashes[static_cast<std::size_t>(end.rank())] = replica_hash(*session);
  });
  EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[0], hashes[2]);
}

// Sums would be of different tensors.
TEST(Ranks, DifferentPlansAreRefused) {
  const auto thrown = run_ranks(threads_kind(), world(2), [&](Communicator& end) {
    TrainOptions options = mlp(8);
    options.model_options.hidden = end.rank() == 0 ? 8 : 9;
    options.session.ranks = borrowed(end);
    (void)train(options);
  });
  for (const std::string& each : thrown) EXPECT_THAT(each, HasSubstr("another plan"));
}

TEST(Ranks, WhatWouldGoWrongInSilenceIsRefused) {
  TrainOptions resnet = mlp(5);
  resnet.model = "resnet20";
  resnet.model_options = {.batch = 5, .channels = 3, .height = 8, .width = 8, .classes = 3};
  const auto thrown = run_ranks(threads_kind(), world(2), [&](Communicator& end) {
    TrainOptions mine = resnet;
    mine.session.ranks = borrowed(end);
    (void)train(mine);
  });
  EXPECT_THAT(thrown, ::testing::Contains(HasSubstr("take a multiple of 2")));
}

// C39: a rank that throws in the middle of training ends all others, and is named.
TEST(Ranks, ARankThatThrowsEndsAllAndIsNamed) {
  for (const GroupKind& kind : group_kinds()) {
    const auto thrown = run_ranks(kind, world(3), [&](Communicator& end) {
      TrainOptions options = mlp(9);
      options.steps = 1000;
      options.session.ranks = borrowed(end);
      TrainHooks hooks;
      hooks.stepped = [&](const TrainHooks::Step& step) {
        if (end.rank() == 1 && step.step == 3) throw base::device_error("disk on fire");
      };
      (void)train(options, hooks);
    });
    EXPECT_EQ(thrown[1], "disk on fire");
    for (const std::size_t rank : {0u, 2u})
      EXPECT_THAT(thrown[rank], HasSubstr("rank 1 failed first: after step 3: disk on fire"))
          << kind.name;
  }
}

// A signal may reach the ranks at different times.
TEST(Ranks, AllStopAfterTheSameStep) {
  std::atomic<bool> stop{false};
  std::vector<std::int64_t> steps(3);
  const auto thrown = run_ranks(threads_kind(), world(3), [&](Communicator& end) {
    TrainOptions options = mlp(9);
    options.steps = 100000;
    options.session.ranks = borrowed(end);
    TrainHooks hooks;
    const std::atomic<bool> never{false};
    hooks.stop = end.rank() == 2 ? &stop : &never;
    hooks.stepped = [&](const TrainHooks::Step& step) {
      if (step.step == 5) stop = true;
    };
    const auto report = std::get<TrainReport>(train(options, hooks));
    steps[static_cast<std::size_t>(end.rank())] = report.steps;
  });
  EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
  EXPECT_EQ(steps[0], steps[1]);
  EXPECT_EQ(steps[0], steps[2]);
  EXPECT_LT(steps[0], 100);
}

// torch.chunk's parts: C35.
TEST(Shards, AreThoseOfTorchChunk) {
  const auto counts = [](std::int64_t items, std::int64_t ranks) {
    std::vector<std::int64_t> all;
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      all.push_back(Shard{rank, ranks}.count(items));
    return all;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(counts(30, 2), ElementsAre(15, 15));
  EXPECT_THAT(counts(30, 8), ElementsAre(4, 4, 4, 4, 4, 4, 4, 2));
  EXPECT_THAT(counts(10, 3), ElementsAre(4, 4, 2));
  EXPECT_THAT(counts(10, 8), ElementsAre(2, 2, 2, 2, 2, 0, 0, 0));
  EXPECT_THAT(counts(9, 4), ElementsAre(3, 3, 3, 0));
  EXPECT_THAT(counts(1, 4), ElementsAre(1, 0, 0, 0));
}

}  // namespace
}  // namespace reprise::api
