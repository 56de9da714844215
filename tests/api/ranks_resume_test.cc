// Snapshots of several ranks: carried state is that of the whole global batch, so any number of
// ranks goes on from it. And evaluations that the ranks share.

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>

#include "gmock/gmock.h"

#include "api/data_source.h"
#include "api/shard.h"
#include "api/trainer.h"
#include "runtime/snapshot.h"
#include "tests/api/training_case.h"
#include "tests/runtime/comm_kinds.h"
#include "tests/runtime/temp_folder.h"

namespace reprise::api {
namespace {

using runtime::comm::Communicator;
using runtime::comm::testing::run_ranks;
using runtime::comm::testing::threads_kind;
using runtime::comm::testing::world;
using runtime::testing::TempFolder;
using ::testing::HasSubstr;

// By rank; of one rank alone without a communicator.
std::map<int, TrainReport> train_on(
    int ranks, const TrainOptions& options,
    const std::function<void(int rank, TrainOptions&)>& change = [](int, TrainOptions&) {}) {
  std::map<int, TrainReport> reports;
  if (ranks == 1) {
    reports[0] = std::get<TrainReport>(train(options));
    return reports;
  }
  std::mutex mutex;
  const auto thrown = run_ranks(threads_kind(), world(ranks), [&](Communicator& end) {
    TrainOptions mine = options;
    mine.session.ranks = {&end, [](Communicator*) {}};
    change(end.rank(), mine);
    auto outcome = train(mine);
    const std::lock_guard lock(mutex);
    reports[end.rank()] = std::get<TrainReport>(std::move(outcome));
  });
  EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
  return reports;
}

// State is carried from batch to batch; 5 streams over 2, 3 and 4 ranks are uneven parts with
// padding, and one rank of four has none.
TrainOptions lstm(const std::string& device) {
  TrainOptions options;
  options.model = "lstm";
  options.model_options = {
      .batch = 5, .hidden = 6, .layers = 2, .vocabulary = 11, .seq_len = 6, .chunk = 3};
  options.optimizer = graph::AdamAttributes{.rate = {.base = 0.05}};
  options.session = on(device, "keep_all");
  options.steps = 7;
  options.evaluate = false;
  options.compare_every = 1;
  return options;
}

// Steps 1 to 3 by `first` ranks, the rest by `second`.
std::map<int, TrainReport> train_in_two_parts(const TrainOptions& options, int first, int second,
                                              const std::filesystem::path& folder) {
  TrainOptions part = options;
  part.save_folder = folder;
  part.steps = 3;
  train_on(first, part);
  part.resume = folder;
  part.steps = options.steps;
  part.save_folder.clear();
  return train_on(second, part);
}

std::vector<float> from_fourth(const TrainReport& report) {
  return {report.losses.begin() + 3, report.losses.end()};
}

TEST(RanksResume, OnAsManyRanksEveryBitIsThatOfARunInOneGo) {
  for (const int ranks : {2, 3, 4}) {
    TempFolder folder;
    const auto straight = train_on(ranks, lstm("cpu"));
    const auto resumed = train_in_two_parts(lstm("cpu"), ranks, ranks, folder.path());
    for (const auto& [rank, report] : resumed) {
      SCOPED_TRACE(fmt::format("rank {} of {}", rank, ranks));
      EXPECT_EQ(report.resumed_from, 3);
      EXPECT_EQ(report.losses, from_fourth(straight.at(rank)));
      EXPECT_THAT(report.warnings, ::testing::IsEmpty());
    }
    EXPECT_EQ(resumed.at(0).state_hash, straight.at(0).state_hash);
  }
}

TEST(RanksResume, OnAnotherNumberOfRanksItGoesOnCorrectlyWithANote) {
  const auto straight = train_on(1, lstm("reference"));
  const std::pair<int, int> changes[] = {{1, 3}, {2, 4}, {4, 2}, {3, 1}};
  for (const auto& [first, second] : changes) {
    SCOPED_TRACE(fmt::format("{} ranks, then {}", first, second));
    TempFolder folder;
    const auto resumed = train_in_two_parts(lstm("reference"), first, second, folder.path());
    const auto wanted = from_fourth(straight.at(0));
    for (const auto& [rank, report] : resumed) {
      ASSERT_EQ(report.losses.size(), wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i)
        EXPECT_NEAR(report.losses[i], wanted[i], 1e-5 * wanted[i]) << "step " << i + 4;
    }
    EXPECT_THAT(resumed.at(0).warnings,
                ::testing::Contains(HasSubstr(fmt::format(
                    "the snapshot is of {} rank{}, and this run has {}: it goes on with the same "
                    "global batches, but not bit for bit",
                    first, first == 1 ? "" : "s", second))));
  }
}

// C44: each rank names a folder of its own, and the snapshot is in rank 0's.
TEST(RanksResume, TheFileOfTheFirstRankIsEnough) {
  TempFolder folder;
  const auto straight = train_on(2, lstm("cpu"));
  TrainOptions part = lstm("cpu");
  part.steps = 3;
  part.save_folder = folder / "rank0";
  train_on(2, part, [&](int rank, TrainOptions& mine) {
    if (rank == 1) mine.save_folder = folder / "nothing";
  });
  EXPECT_FALSE(std::filesystem::exists(folder / "nothing"));
  part.steps = 7;
  const auto resumed = train_on(2, part, [&](int rank, TrainOptions& mine) {
    mine.save_folder.clear();
    mine.resume = rank == 0 ? folder / "rank0" : folder / "nothing";
  });
  EXPECT_EQ(resumed.at(1).losses, from_fourth(straight.at(1)));
  EXPECT_EQ(resumed.at(0).state_hash, straight.at(0).state_hash);
}

// Streams of the test text are those of one rank, whoever has them.
TEST(RanksEvaluate, ATextAsOneRankDoes) {
  TrainOptions options = lstm("reference");
  options.steps = 2;
  options.evaluate = true;
  const TrainReport alone = train_on(1, options).at(0);
  for (const int ranks : {2, 3, 4}) {
    const auto reports = train_on(ranks, options);
    for (const auto& [rank, report] : reports) {
      SCOPED_TRACE(fmt::format("rank {} of {}", rank, ranks));
      EXPECT_NEAR(*report.test_loss, *alone.test_loss, 1e-5 * *alone.test_loss);
      EXPECT_EQ(*report.test_accuracy, *alone.test_accuracy);
      EXPECT_EQ(*report.test_loss, *reports.at(0).test_loss);
    }
  }
}

// The loss when one session evaluates all parts of all ranks, with the snapshot's values.
double loss_of_one(const TrainOptions& options, int ranks, const std::filesystem::path& folder) {
  models::ModelOptions local = options.model_options;
  const auto source = open_data(options, local, Shard{0, ranks});
  local.batch /= ranks;
  models::ModelOptions inference = local;
  inference.training = false;
  const auto session = make_session(models::make_model(options.model, local), options.session,
                                    {.optimizer = options.optimizer},
                                    {models::make_model(options.model, inference)});
  const runtime::Snapshot snapshot = runtime::load_latest_snapshot(folder);
  for (const Session::Variable& each : session->variables()) {
    session->write(each.name,
                   runtime::find_tensor(snapshot, each.name, each.dtype, each.shape, "it").data);
  }
  source->set_evaluation(inference);
  session->begin_evaluation();
  double loss = 0;
  std::int64_t items = 0;
  for (std::int64_t i = 0; i < source->evaluation_parts(); ++i) {
    const auto part = source->fill_evaluation(*session, i);
    loss += static_cast<double>(session->evaluate().loss) * static_cast<double>(part.divisor);
    items += part.items;
  }
  session->end_evaluation();
  return loss / static_cast<double>(items);
}

// Every rank's batch norm has other statistics; those of rank 0, which are saved, are evaluated.
TEST(RanksEvaluate, ImagesToTheBitAsTheFirstRankWouldAlone) {
  TrainOptions options;
  options.model = "resnet20";
  options.model_options = {.batch = 12, .channels = 3, .height = 8, .width = 8, .classes = 3};
  options.optimizer = graph::SgdAttributes{.rate = {.base = 0.1}};
  options.session = on("cpu", "keep_all");
  options.steps = 3;
  for (const int ranks : {2, 3}) {
    TempFolder folder;
    options.save_folder = folder.path();
    const auto reports = train_on(ranks, options);
    const double wanted = loss_of_one(options, ranks, folder.path());
    for (const auto& [rank, report] : reports) {
      SCOPED_TRACE(fmt::format("rank {} of {}", rank, ranks));
      EXPECT_EQ(*report.test_loss, wanted);
      EXPECT_EQ(*report.test_accuracy, *reports.at(0).test_accuracy);
    }
  }
}

}  // namespace
}  // namespace reprise::api
