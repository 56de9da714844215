#include "cli/report.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

TEST(Report, InfeasibleBudgetsSayWhatBindsAndWhatToDo) {
  const planner::Infeasible infeasible{.floor = 3 * base::kMiB,
                                       .bound_by = "layer1.conv1",
                                       .largest = {{"layer1.x", 2 * base::kMiB}, {"w", 4096}}};
  EXPECT_EQ(infeasible_message(infeasible, "net", "segments", "1MiB"),
            "--budget 1MiB is too small: net with planner segments needs at least 3.0 MiB "
            "(3,145,728 bytes).\n"
            "At that floor 'layer1.conv1' binds: what it reads, writes and books, beside what "
            "later steps need.\n"
            "The largest tensors there:\n"
            "  tensor        bytes\n"
            "  layer1.x  2,097,152  2.0 MiB\n"
            "  w             4,096  4.0 KiB\n"
            "Try --budget 3145728 (or --budget floor), a smaller --batch, or --planner auto, "
            "which may need less.");
}

TEST(Report, HashesHaveSixteenDigits) {
  EXPECT_EQ(hash_text(0), "0000000000000000");
  EXPECT_EQ(hash_text(0xFEDCBA9876543210), "fedcba9876543210");
}

TEST(Report, ErrorsWithOddBytesAreStillDocuments) {
  std::ostringstream out, err;
  Context context{.out = out, .err = err, .json = true};
  report_error(context, "input", "file \xff\xfe");
  EXPECT_TRUE(nlohmann::json::accept(out.str())) << out.str();
  EXPECT_EQ(err.str(), "");
}

// The README's program is the one that is compiled and run.
TEST(Readme, ShowsTheExampleAsItIs) {
  const std::filesystem::path root = std::filesystem::path(REPRISE_TEST_DATA) / ".." / "..";
  const std::string readme = read_file(root / "README.md");
  const std::string example = read_file(root / "examples" / "train_mlp.cc");
  ASSERT_FALSE(example.empty());
  EXPECT_NE(readme.find("```cpp\n" + example + "```\n"), std::string::npos)
      << "paste examples/train_mlp.cc into README.md";
}

}  // namespace
}  // namespace reprise::cli
