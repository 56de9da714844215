// What a user is told when memory does not suffice: what is needed, what there is, in bytes and in
// words, and by the exit code whether the budget or the machine is too small.

#include <gmock/gmock.h>

#include "cli/command.h"

#include "base/bytes.h"
#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using testing::HasSubstr;

std::vector<std::string> training(const std::vector<std::string>& more) {
  return with(with({"train"}, kTiny), with({"--data", "synthetic", "--steps", "1"}, more));
}

// One byte less than the least: refused by the plan, before anything is reserved.
TEST(OutOfMemoryCase, ABudgetBelowTheFloorIsRefusedWithTheFloorInBytesAndWords) {
  const Ran plan = run_cli(with(with({"plan"}, kTiny), {"--budget", "floor", "--json"}));
  ASSERT_EQ(plan.code, kOk) << plan.err;
  const auto floor = plan.document().at("floor_bytes").get<std::int64_t>();
  const Ran ran = run_cli(training({"--budget", std::to_string(floor - 1)}));
  EXPECT_EQ(ran.code, kInfeasible);
  EXPECT_THAT(ran.err, HasSubstr("needs at least " + base::format_bytes(floor)));
  EXPECT_THAT(ran.err, HasSubstr("binds"));
  EXPECT_THAT(ran.err, HasSubstr("--budget " + std::to_string(floor)));
}

// Two layers of a million by a million weights: 4 TB and more that the budget allows and no machine
// has.
TEST(OutOfMemoryCase, AMachineWithoutTheMemorySaysWhatIsMissingAndExitsOtherwise) {
  const Ran ran = run_cli({"train", "--model", "mlp", "--data", "synthetic", "--image", "1x4x4",
                           "--hidden", "1000000", "--layers", "2", "--classes", "3", "--batch", "2",
                           "--steps", "1", "--budget", "100TB"});
  EXPECT_EQ(ran.code, kFailure);
  EXPECT_THAT(ran.err, testing::ContainsRegex("cannot reserve an arena of [0-9]{13,} bytes"));
  EXPECT_THAT(ran.err, HasSubstr("TiB): not enough memory; "));
  EXPECT_THAT(ran.err, HasSubstr("are available: plan with a budget below that"));
}

// Images of 16 pixels: a set of four batches, 20 bytes an image with its label, and one batch of 17
// floats an item: (4 * 20 + 4 * 17) * 2,147,483,648,000 = 317,827,579,904,000 bytes.
TEST(OutOfMemoryCase, ABatchBeyondTheMachineSaysWhatItNeedsAndWhatThereIs) {
  const Ran ran = run_cli({"train", "--model", "mlp", "--image", "1x4x4", "--classes", "3",
                           "--batch", "2147483648000", "--steps", "1"});
  EXPECT_EQ(ran.code, kFailure);
  EXPECT_THAT(ran.err, HasSubstr("--batch 2147483648000 need 317827579904000 bytes"));
  EXPECT_THAT(ran.err, testing::ContainsRegex("but [0-9]+ bytes .* are available"));
  EXPECT_THAT(ran.err, HasSubstr("use a smaller --batch or --image"));
}

TEST(OutOfMemoryCase, ABudgetBeyondTheMachineIsFineWhenTheStepIsSmall) {
  const Ran ran = run_cli(training({"--budget", "100TB", "--json"}));
  EXPECT_EQ(ran.code, kOk) << ran.err;
  const auto plan = ran.document().at("plan");
  EXPECT_EQ(plan.at("recomputed_nodes"), 0);
  EXPECT_LE(plan.at("peak_bytes"), plan.at("keep_all_bytes"));
}

}  // namespace
}  // namespace reprise::cli
