#include "cli/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/temp_folder.h"

namespace reprise::cli {
namespace {

using runtime::testing::error_of;
using runtime::testing::TempFolder;
using ::testing::HasSubstr;

TEST(Files, AreReadToTheirLastByte) {
  const TempFolder folder;
  std::string text(3'000'001, 'x');  // beyond two blocks
  text[2'999'999] = '\0';
  runtime::testing::write_file(folder / "long", text);
  EXPECT_EQ(read_file(folder / "long"), text);
  runtime::testing::write_file(folder / "empty", std::string());
  EXPECT_EQ(read_file(folder / "empty"), "");
}

TEST(Files, WhatHasNoEndIsRefusedRatherThanReadForEver) {
  EXPECT_THAT(error_of([] { (void)read_file("/dev/zero"); }),
              HasSubstr("'/dev/zero': it is no regular file and gives more than 1.0 GiB"));
}

}  // namespace
}  // namespace reprise::cli
