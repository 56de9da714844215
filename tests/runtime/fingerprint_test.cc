#include "runtime/fingerprint.h"

#include <gtest/gtest.h>
#include <vector>

namespace reprise::runtime {
namespace {

// The expected sums are Python's, of zlib.crc32 over struct.pack("<3i", ...).

TEST(Fingerprint, OfTokensIsTheirCountAndSum) {
  EXPECT_EQ(fingerprint(std::vector<std::int32_t>{1, 2, 3}), "3 tokens, crc32 b0e02293");
  EXPECT_EQ(fingerprint(std::vector<std::int32_t>{}), "0 tokens, crc32 00000000");
}

TEST(Fingerprint, OfImagesTakesPixelsThenLabels) {
  ImageDataset images{.name = "three",
                      .channels = 1,
                      .height = 2,
                      .width = 2,
                      .classes = 3,
                      .pixels = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
                      .labels = {0, 2, 1}};
  const std::string first = fingerprint(images);
  EXPECT_EQ(first, "3 images of 1x2x2, crc32 f97340ba");
  std::swap(images.labels[1], images.labels[2]);
  EXPECT_NE(fingerprint(images), first);
  std::swap(images.labels[1], images.labels[2]);
  images.pixels[11] = 10;
  EXPECT_NE(fingerprint(images), first);
}

}  // namespace
}  // namespace reprise::runtime
