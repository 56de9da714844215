// How a run ends, and what is refused before it begins, seen from the API.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "api/trainer.h"
#include "tests/runtime/temp_folder.h"

namespace reprise::api {
namespace {

using runtime::testing::error_of;
using runtime::testing::TempFolder;

TrainOptions tiny(std::int64_t steps, double rate = 0.05) {
  TrainOptions options;
  options.model = "mlp";
  options.model_options = {
      .batch = 4, .channels = 1, .height = 4, .width = 4, .classes = 3, .hidden = 8, .layers = 2};
  graph::SgdAttributes sgd;
  sgd.rate.base = rate;
  options.optimizer = sgd;
  options.steps = steps;
  options.session.threads = 1;
  return options;
}

TrainReport report_of(const TrainOptions& options, const TrainHooks& hooks = {}) {
  return std::get<TrainReport>(train(options, hooks));
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(RunEndCase, ADivergedRunSavesNothingOfThatStateAndNamesWhatIsKept) {
  const TempFolder folder;
  TrainOptions options = tiny(12, 1e30);
  options.save_folder = folder.path();
  options.save_every = 1;
  try {
    (void)train(options);
    FAIL() << "it did not diverge";
  } catch (const Diverged& error) {
    EXPECT_TRUE(says(error.what(), "the loss of step 2 of 12 is ")) << error.what();
    EXPECT_TRUE(says(error.what(), "learning rate 1e+30")) << error.what();
    EXPECT_TRUE(says(error.what(), "snapshot-1.safetensors")) << error.what();
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "snapshot-1.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder / "snapshot-2.safetensors"));
}

TEST(RunEndCase, AStoppedRunIsToldFromAFinishedOne) {
  const std::atomic<bool> stop{true};
  const TrainReport stopped = report_of(tiny(9), {.stop = &stop});
  EXPECT_TRUE(stopped.stopped_early);
  EXPECT_TRUE(says(stopped.warnings.back(), "after step 0 of 9"));
  EXPECT_FALSE(report_of(tiny(2)).stopped_early);
}

TEST(RunEndCase, AFolderIsForOneRun) {
  const TempFolder folder;
  TrainOptions options = tiny(2);
  options.save_folder = folder.path();
  EXPECT_TRUE(report_of(options).warnings.empty());
  ASSERT_EQ(report_of(options).warnings.size(), 1u);  // the first one's snapshot is another run's
  const int lock = open((folder / "reprise.lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(says(error_of([&] { (void)train(options); }), "another run is saving there"));
  close(lock);
  options.resume = folder.path();
  options.steps = 3;
  EXPECT_TRUE(report_of(options).warnings.empty());  // goes on with the newest one
}

// A budget of one byte would be the planner's to refuse, as a value.
TEST(RunEndCase, SnapshotsThatDoNotFitAreRefusedBeforePlanning) {
  const TempFolder folder;
  TrainOptions options = tiny(2);
  options.save_folder = folder.path();
  (void)report_of(options);
  options.save_folder.clear();
  options.resume = folder.path();
  options.session.plan.budget = {.kind = Budget::Kind::kBytes, .bytes = 1};
  const auto refusal = [](const TrainOptions& run) { return error_of([&] { (void)train(run); }); };
  EXPECT_TRUE(says(refusal(options), "the snapshot is at step 2"));
  options.steps = 4;
  TrainOptions other = options;
  other.session.seed = 7;
  EXPECT_TRUE(says(refusal(other), "seed '1', now '7'"));
  other = options;
  other.optimizer = graph::AdamAttributes{};
  EXPECT_TRUE(says(refusal(other), "optimizer 'sgd ")) << refusal(other);
  EXPECT_TRUE(says(refusal(other), "now 'adam ")) << refusal(other);
  EXPECT_TRUE(std::holds_alternative<planner::Infeasible>(train(options)));
}

TEST(RunEndCase, TheFloorIsThatOfTheChosenPlanner) {
  for (const char* planner : {"keep_all", "segments", "sqrt_n"}) {
    TrainOptions options = tiny(1);
    options.session.plan.planner = planner;
    options.session.plan.budget = {.kind = Budget::Kind::kFloor};
    const TrainReport report = report_of(options);
    EXPECT_GE(report.plan.budget_bytes, report.plan.floor_bytes) << planner;
    options.session.plan.budget = {.kind = Budget::Kind::kBytes,
                                   .bytes = report.plan.budget_bytes - 1};
    EXPECT_TRUE(std::holds_alternative<planner::Infeasible>(train(options))) << planner;
  }
}

TEST(RunEndCase, ABatchBeyondTheHostSaysWhatItNeeds) {
  TrainOptions options = tiny(1);
  options.model_options.batch = 2'147'483'648'000;  // 4 * 20 + 4 * 17 bytes an image of 16 pixels
  const std::string said = error_of([&] { (void)train(options); }, base::ErrorKind::kDevice);
  EXPECT_TRUE(says(said, "need 317827579904000 bytes")) << said;
}

}  // namespace
}  // namespace reprise::api
