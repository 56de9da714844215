// Everything that a run stands on comes back: parameters, optimizer state, learning rate, step,
// place in the data, random draws. Under another budget and planner too.

#include <filesystem>
#include <unistd.h>

#include "api/trainer.h"
#include "tests/api/training_case.h"

namespace reprise::api {
namespace {

namespace fs = std::filesystem;

class ResumeCase : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("reprise_resume_{}", getpid());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TrainReport report_of(const TrainOptions& options) {
  auto outcome = train(options);
  EXPECT_TRUE(std::holds_alternative<TrainReport>(outcome));
  return std::get<TrainReport>(std::move(outcome));
}

// Saved at step 3 of 7, goes on with `budget` and `planner` there: the bits of a run that never
// stopped.
void expect_same_bits_after_a_resume(TrainOptions options, const fs::path& folder) {
  options.evaluate = false;
  options.session = on("cpu", "keep_all");
  options.steps = 7;
  const TrainReport straight = report_of(options);
  ASSERT_EQ(straight.losses.size(), 7u);
  options.steps = 3;
  options.save_folder = folder;
  (void)report_of(options);
  options.steps = 7;
  options.save_folder.clear();
  options.resume = folder;
  options.session = on("cpu", "auto", {.kind = Budget::Kind::kFloor});
  const TrainReport resumed = report_of(options);
  EXPECT_EQ(resumed.resumed_from, 3);
  EXPECT_LT(resumed.plan.peak_bytes, straight.plan.peak_bytes);
  EXPECT_EQ(resumed.losses, std::vector<float>(straight.losses.begin() + 3, straight.losses.end()));
  EXPECT_EQ(resumed.state_hash, straight.state_hash);
}

// The rate halves each step; dropout draws; (h, c) is carried from window to window.
TEST_F(ResumeCase, RateDrawsAndCarriedStateGoOnUnderAnotherPlan) {
  TrainOptions options;
  options.model = "lstm";
  options.model_options = {.batch = 4,
                           .hidden = 8,
                           .layers = 2,
                           .vocabulary = 11,
                           .seq_len = 24,
                           .chunk = 3,
                           .dropout = 0.25};
  options.optimizer = graph::AdamAttributes{
      .rate = {
          .kind = graph::LearningRate::Kind::kStep, .base = 0.1, .period_steps = 1, .factor = 0.5}};
  expect_same_bits_after_a_resume(options, folder_);
}

// Running statistics, momentum, the shuffled order and the augmentation of each image.
TEST_F(ResumeCase, StatisticsOrderAndAugmentationGoOnUnderAnotherPlan) {
  TrainOptions options;
  options.model = "resnet20";
  options.model_options = {.batch = 4, .channels = 1, .height = 8, .width = 8, .classes = 3};
  options.augment = true;
  options.optimizer = graph::SgdAttributes{
      .rate = {.kind = graph::LearningRate::Kind::kStep, .base = 0.1, .period_steps = 1},
      .momentum = 0.9};
  expect_same_bits_after_a_resume(options, folder_);
}

}  // namespace
}  // namespace reprise::api
