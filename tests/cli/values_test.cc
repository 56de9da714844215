#include "cli/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/table.h"

#include "base/error.h"
#include "tests/runtime/temp_folder.h"

namespace reprise::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class F>
std::string error_of(F&& action) {
  return runtime::testing::error_of(action);
}

TEST(Values, WholeNumbersAreDecimalAndWhole) {
  EXPECT_EQ(parse_whole("--n", "64", 1), 64);
  EXPECT_EQ(parse_whole("--n", "010", 1), 10);  // never octal
  EXPECT_EQ(parse_whole("--n", "9223372036854775807", 1), kNoLimit);
}

TEST(Values, RejectsWhatIsNoWholeNumberInRange) {
  for (const char* text :
       {"", "0", "-3", "+3", "3.0", "3 ", " 3", "1e3", "0x10", "abc", "9223372036854775808"}) {
    const std::string message = error_of([&] { (void)parse_whole("--batch", text, 1); });
    EXPECT_THAT(message, HasSubstr(std::string("--batch '") + text + "'")) << text;
    EXPECT_THAT(message, HasSubstr("whole number of at least 1")) << text;
  }
  EXPECT_THAT(error_of([] { (void)parse_whole("--n", "9", 1, 8); }), HasSubstr("from 1 to 8"));
}

TEST(Values, RealNumbersRespectOpenAndClosedEnds) {
  EXPECT_DOUBLE_EQ(parse_real("--lr", "1e-4", 0, 1), 1e-4);
  EXPECT_DOUBLE_EQ(parse_real("--lr", "0", 0, 1), 0);
  EXPECT_THAT(error_of([] { (void)parse_real("--f", "0", 0, 1, true); }), HasSubstr("above 0"));
  for (const char* text : {"", "nan", "inf", "-0.1", "1.1", "0,5", "1e400"}) {
    EXPECT_THAT(error_of([&] { (void)parse_real("--p", text, 0, 1); }),
                HasSubstr("at least 0 and at most 1"))
        << text;
  }
}

TEST(Values, ListsAreSplitAtCommas) {
  EXPECT_THAT(split_list("--planners", "auto"), ElementsAre("auto"));
  EXPECT_THAT(split_list("--planners", "a,b,c"), ElementsAre("a", "b", "c"));
  for (const char* text : {"", ",", "a,", ",a", "a,,b"}) {
    EXPECT_THAT(error_of([&] { (void)split_list("--planners", text); }), HasSubstr("empty"))
        << text;
  }
}

TEST(Values, NearestWordAllowsAFewSlips) {
  const std::vector<std::string> flags = {"--batch", "--budget", "--budgets", "--lr"};
  EXPECT_EQ(nearest_word("--bach", flags), "--batch");
  EXPECT_EQ(nearest_word("--budgte", flags), "--budget");
  EXPECT_EQ(nearest_word("--something-else", flags), "");
}

TEST(Table, AlignsColumnsAndDropsTrailingSpace) {
  Table table({{"name", Table::Align::kLeft}, {"bytes"}});
  table.add({"a", "1,234"});
  table.add({"longer", "5"});
  EXPECT_EQ(table.text(2),
            "  name    bytes\n"
            "  a       1,234\n"
            "  longer      5\n");
}

TEST(Table, NumbersAreGroupedByThousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(-123), "-123");
}

TEST(Table, BytesArePrintedBothWays) {
  EXPECT_EQ(exact_bytes(67'108'864), "64.0 MiB (67,108,864 bytes)");
}

}  // namespace
}  // namespace reprise::cli
