// Gradient accumulation: the results of the full batch, however it is cut, on one rank and several.

#include <cmath>
#include <map>
#include <mutex>

#include "gmock/gmock.h"

#include "api/prepare.h"
#include "api/shard.h"
#include "api/trainer.h"
#include "planner/strategy.h"
#include "tests/api/small_run.h"
#include "tests/api/training_case.h"
#include "tests/runtime/comm_kinds.h"

namespace reprise::api {
namespace {

using runtime::comm::Communicator;
using runtime::comm::testing::run_ranks;
using runtime::comm::testing::threads_kind;
using runtime::comm::testing::world;
using ::testing::HasSubstr;

TrainOptions mlp(std::int64_t batch, std::int64_t micro_batches) {
  TrainOptions options = small_mlp_run(batch, 6);
  options.optimizer = graph::SgdAttributes{.rate = {.base = 0.5}, .momentum = 0.9};
  options.micro_batches = micro_batches;
  return options;
}

TrainOptions lstm(std::int64_t batch, std::int64_t micro_batches, bool stateful) {
  TrainOptions options = mlp(batch, micro_batches);
  options.model = "lstm";
  options.model_options = {.batch = batch,
                           .hidden = 6,
                           .layers = 1,
                           .vocabulary = 11,
                           .seq_len = 6,
                           .chunk = 3,
                           .stateful = stateful};
  return options;
}

TrainReport trained(const TrainOptions& options) {
  return std::get<TrainReport>(train(options));
}

void expect_close(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], 1e-5 * std::abs(wanted[i])) << "step " << i;
}

// 30 in 3 are 10 each; 10 in 4 are 3, 3, 3 and 1; 5 in 4 are 2, 2, 1 and none.
TEST(AccumulationCase, LossesAreThoseOfTheFullBatchHoweverItIsCut) {
  for (const std::int64_t batch : {30, 10, 5}) {
    const TrainReport whole = trained(mlp(batch, 1));
    for (const std::int64_t pieces : {2, 3, 4}) {
      SCOPED_TRACE(fmt::format("batch {} in {}", batch, pieces));
      const TrainReport cut = trained(mlp(batch, pieces));
      expect_close(cut.losses, whole.losses);
      EXPECT_EQ(cut.plan.micro_batches, pieces);
    }
  }
}

TEST(AccumulationCase, CarriedStateIsThatOfEachStream) {
  const TrainReport whole = trained(lstm(6, 1, true));
  for (const std::int64_t pieces : {2, 3, 6})
    expect_close(trained(lstm(6, pieces, true)).losses, whole.losses);
}

TEST(AccumulationCase, StatelessStreamsNeedNotBeEven) {
  const TrainReport whole = trained(lstm(5, 1, false));
  for (const std::int64_t pieces : {2, 3})
    expect_close(trained(lstm(5, pieces, false)).losses, whole.losses);
}

// What must be shown: with each planner, at half of what the activations take, on the CPU. Among
// budgets and planners bits do not differ at all.
TEST(AccumulationCase, EveryPlannerGivesTheSameBitsAtHalfOfTheActivations) {
  TrainOptions options = mlp(60, 4);
  options.session = on("cpu", "keep_all");
  TrainOptions whole = mlp(60, 1);
  whole.session = options.session;
  const TrainReport kept = trained(options);
  expect_close(kept.losses, trained(whole).losses);
  EXPECT_LT(kept.plan.peak_bytes, trained(whole).plan.peak_bytes);
  const Bytes half =
      kept.plan.persistent_bytes + (kept.plan.peak_bytes - kept.plan.persistent_bytes) * 3 / 4;
  for (const planner::Strategy* strategy : planner::all_strategies()) {
    const std::string name(strategy->name());
    options.session = on("cpu", name, bytes_budget(half));
    if (name == "keep_all") continue;
    auto outcome = train(options);
    if (std::holds_alternative<planner::Infeasible>(outcome)) {
      options.session = on("cpu", name, {.kind = Budget::Kind::kFloor});
      outcome = train(options);
    }
    const TrainReport& report = std::get<TrainReport>(outcome);
    EXPECT_EQ(report.losses, kept.losses) << name;
    EXPECT_EQ(report.state_hash, kept.state_hash) << name;
  }
}

// C41: parts by rank and by micro-batch, empty ones included: 7 over 2 ranks are 4 and 3, in 3
// pieces of 2: (2, 2, -) and (2, 1, -).
TEST(AccumulationCase, OverRanksTooAllItemsCountOnce) {
  for (const std::int64_t batch : {30, 10, 7}) {
    const TrainReport whole = trained(mlp(batch, 1));
    std::map<int, TrainReport> reports;
    std::mutex mutex;
    const auto thrown = run_ranks(threads_kind(), world(2), [&](Communicator& end) {
      TrainOptions mine = mlp(batch, 3);
      mine.session.ranks = {&end, [](Communicator*) {}};
      auto outcome = train(mine);
      const std::lock_guard lock(mutex);
      reports[end.rank()] = std::get<TrainReport>(std::move(outcome));
    });
    EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
    for (const auto& [rank, report] : reports) expect_close(report.losses, whole.losses);
  }
}

// Rows 0 to 3 of 8 streams are rank 0's, in micro-batches of 2; those of rank 1 follow.
TEST(AccumulationCase, OverRanksCarriedStateIsThatOfEachStream) {
  const TrainReport whole = trained(lstm(8, 1, true));
  std::vector<std::vector<float>> losses(2);
  const auto thrown = run_ranks(threads_kind(), world(2), [&](Communicator& end) {
    TrainOptions mine = lstm(8, 2, true);
    mine.session.ranks = {&end, [](Communicator*) {}};
    losses[static_cast<std::size_t>(end.rank())] = std::get<TrainReport>(train(mine)).losses;
  });
  EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
  for (const auto& each : losses) expect_close(each, whole.losses);
}

// C41: labels that do not count: 3 in the first micro-batch, 1 in the second. The loss is w times
// the mean over those 4 and not a mean of means.
TEST(AccumulationCase, WeightsAreThoseOfCountedItems) {
  graph::Builder b("mean");
  const auto x = b.input("x", {3, 1});
  const auto w = b.parameter("w", {1, 1});
  b.set_loss(b.mean_squared_error(b.matmul(x, w), b.input("zero", {3, 1}), graph::Reduction::kSum));
  const models::Model model{.graph = b.finish(), .initializers = {{"w", {Kind::kOnes, 0}}}};
  const auto session =
      make_session(model, on("reference"),
                   {.optimizer = graph::SgdAttributes{.rate = {.base = 1.0}}, .micro_batches = 2});
  const std::vector<std::vector<float>> parts{{1, 2, 3}, {4, 0, 0}};
  for (std::int64_t k = 0; k < 2; ++k) {
    session->set_input(graph::micro_batch_name(k, "x"),
                       bytes_of(parts[static_cast<std::size_t>(k)]));
    session->set_input(graph::micro_batch_name(k, "zero"), bytes_of(std::vector<float>{0, 0, 0}));
    session->set_gradient_weight(0.25F, k);
  }
  // (1 + 4 + 9 + 16) / 4, and the gradient is twice that.
  EXPECT_NEAR(session->step(), 7.5, 1e-6);
  EXPECT_NEAR(numbers(session->read("w"))[0], 1.0 - 15.0, 1e-5);
}

// Batch norm sees a micro-batch at a time, and its running statistics take them up in their order:
// with a rate of 0 one step of two micro-batches leaves what two steps of one leave, bit for bit.
TEST(AccumulationCase, RunningStatisticsAreThoseOfTheMicroBatchesInOrder) {
  const models::Model model = models::make_model(
      "resnet20", {.batch = 4, .channels = 3, .height = 8, .width = 8, .classes = 3});
  const graph::SgdAttributes still{.rate = {.base = 0.0}};
  const auto two_steps = make_session(model, on("cpu", "keep_all"), {.optimizer = still});
  const auto one_step =
      make_session(model, on("cpu", "keep_all"), {.optimizer = still, .micro_batches = 2});
  for (std::int64_t k = 0; k < 2; ++k) {
    const auto images = wave(4 * 3 * 64, static_cast<std::size_t>(k));
    const auto labels = ids(4, 3, static_cast<std::size_t>(k));
    two_steps->set_input("images", bytes_of(images));
    two_steps->set_input("labels", bytes_of(labels));
    (void)two_steps->step();
    one_step->set_input(graph::micro_batch_name(k, "images"), bytes_of(images));
    one_step->set_input(graph::micro_batch_name(k, "labels"), bytes_of(labels));
    one_step->set_gradient_weight(0.5F, k);
  }
  (void)one_step->step();
  EXPECT_EQ(one_step->state_hash(), two_steps->state_hash());
}

// Images 0 and 1 on rank 0, 2 and 3 on rank 1, two micro-batches of one each: with batch norm over
// ranks that is one rank with the micro-batches (0, 2) and (1, 3).
TEST(AccumulationCase, BatchNormOverRanksIsThatOfTheMicroBatchOfAll) {
  const auto model = [](std::int64_t batch) {
    return models::make_model(
        "resnet20", {.batch = batch, .channels = 3, .height = 8, .width = 8, .classes = 3});
  };
  const graph::TrainingOptions training{.optimizer = graph::SgdAttributes{.rate = {.base = 0.1}},
                                        .micro_batches = 2};
  const auto images = wave(4 * 3 * 64);
  const std::vector<std::int32_t> labels{0, 1, 2, 1};
  const auto set = [&](Session& session, std::int64_t k, const std::vector<std::size_t>& items) {
    std::vector<float> pixels;
    std::vector<std::int32_t> own;
    for (const std::size_t item : items) {
      const auto begin = images.begin() + static_cast<std::ptrdiff_t>(item * 192);
      pixels.insert(pixels.end(), begin, begin + 192);
      own.push_back(labels[item]);
    }
    session.set_input(graph::micro_batch_name(k, "images"), bytes_of(pixels));
    session.set_input(graph::micro_batch_name(k, "labels"), bytes_of(own));
    session.set_gradient_weight(static_cast<float>(items.size()) / 4.0F, k);
    session.set_batch_parts(std::vector<std::int64_t>{1, 1}, k);
  };
  const auto alone = make_session(model(2), on("reference", "keep_all"), training);
  set(*alone, 0, {0, 2});
  set(*alone, 1, {1, 3});
  const float loss = alone->step();
  std::map<std::string, std::vector<float>> expected;
  for (const Session::Variable& variable : alone->variables())
    expected[variable.name] = numbers(alone->read(variable.name));
  std::vector<float> losses(2);
  const auto thrown = run_ranks(threads_kind(), world(2), [&](Communicator& end) {
    SessionOptions options = on("reference", "keep_all");
    options.ranks = {&end, [](Communicator*) {}};
    options.synchronise_batch_norm = true;
    const auto session = make_session(model(1), options, training);
    const auto rank = static_cast<std::size_t>(end.rank());
    set(*session, 0, {2 * rank});
    set(*session, 1, {2 * rank + 1});
    losses[rank] = session->step();
    for (const Session::Variable& variable : session->variables()) {
      const auto got = numbers(session->read(variable.name));
      const auto& wanted = expected.at(variable.name);
      ASSERT_EQ(got.size(), wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], wanted[i], 1e-5 * (std::abs(wanted[i]) + 1)) << variable.name;
    }
  });
  EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
  EXPECT_NEAR(losses[0] + losses[1], loss, 1e-5 * std::abs(loss));
}

TEST(AccumulationCase, UnevenCutsAreRefusedWherePaddingWouldCount) {
  TrainOptions options = mlp(30, 4);
  options.model = "resnet20";
  options.model_options = {.batch = 30, .channels = 3, .height = 8, .width = 8, .classes = 3};
  const auto refused = [](const TrainOptions& wrong) {
    const std::string of_training = error_of([&] { (void)train(wrong); });
    EXPECT_EQ(error_of([&] { (void)prepare_training(wrong); }), of_training);
    return of_training;
  };
  EXPECT_THAT(refused(options),
              ::testing::AllOf(HasSubstr("statistics of batch norm"),
                               HasSubstr("--accumulate 3 or 5"), HasSubstr("--batch 28 or 32")));
  EXPECT_THAT(refused(lstm(5, 2, true)),
              ::testing::AllOf(HasSubstr("--stateless"), HasSubstr("--accumulate 1 or 5"),
                               HasSubstr("--batch 4 or 6")));
  EXPECT_THAT(refused(mlp(3, 4)), HasSubstr("--batch 3 has only 3 items"));
}

TEST(AccumulationCase, PartsOfRanksAndMicroBatches) {
  const auto counts = [](std::int64_t items, std::int64_t ranks, std::int64_t pieces) {
    std::vector<std::int64_t> all;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const Shard shard{.rank = rank, .ranks = ranks, .micro_batches = pieces};
      for (std::int64_t k = 0; k < pieces; ++k) all.push_back(shard.count(items, k));
    }
    return all;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(counts(30, 1, 4), ElementsAre(8, 8, 8, 6));
  EXPECT_THAT(counts(7, 2, 3), ElementsAre(2, 2, 0, 2, 1, 0));
  EXPECT_THAT(counts(10, 3, 2), ElementsAre(2, 2, 2, 2, 2, 0));
}

}  // namespace
}  // namespace reprise::api
