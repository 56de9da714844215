#include "base/bytes.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace reprise::base {
namespace {

TEST(ParseBytes, ReadsUnitsExactly) {
  EXPECT_EQ(parse_bytes("64MiB"), 67'108'864);
  EXPECT_EQ(parse_bytes("2GB"), 2'000'000'000);
  EXPECT_EQ(parse_bytes("1.5GiB"), 1'610'612'736);
  EXPECT_EQ(parse_bytes("2.9MiB"), 3'040'870);  // 3,040,870.4: a budget is never rounded up
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("64 kib"), 65'536);
  EXPECT_EQ(parse_bytes("0"), 0);
}

TEST(ParseBytes, RejectsNonsenseByName) {
  for (const char* text : {"", "abc", "-1", "1.5", "MiB", "3XB", "1..2kB", "9999999999999999999",
                           "9000000TiB", "0.00000000000000000001GB"}) {
    try {
      (void)parse_bytes(text);
      FAIL() << "accepted '" << text << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput) << text;
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
}

TEST(FormatBytes, PicksTheLargestUnitBelow) {
  EXPECT_EQ(format_bytes(123), "123 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(314'572'800), "300.0 MiB");
}

TEST(CheckedArithmetic, ThrowsInsteadOfWrapping) {
  const std::int64_t max = INT64_MAX;
  EXPECT_EQ(checked_add(max - 1, 1, "sum"), max);
  EXPECT_THROW((void)checked_add(max, 1, "sum"), Error);
  EXPECT_THROW((void)checked_mul(max, 2, "product"), Error);
}

TEST(AlignUp, RoundsToTheNextMultiple) {
  EXPECT_EQ(align_up(0, 64), 0);
  EXPECT_EQ(align_up(1, 64), 64);
  EXPECT_EQ(align_up(64, 64), 64);
}

}  // namespace
}  // namespace reprise::base
