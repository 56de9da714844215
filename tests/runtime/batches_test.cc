// Batches: order, augmentation and normalisation are functions of (seed, epoch, item).

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "runtime/dataset.h"
#include "tests/runtime/temp_folder.h"

namespace reprise::runtime {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

TEST(ShuffledOrder, IsAPermutationThatDependsOnSeedAndEpochOnly) {
  const auto order = shuffled_order(1000, 7, 2);
  std::vector<std::uint32_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::uint32_t> all(1000);
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(sorted, all);
  EXPECT_NE(order, all);
  EXPECT_EQ(order, shuffled_order(1000, 7, 2));
  EXPECT_NE(order, shuffled_order(1000, 7, 3));
  EXPECT_NE(order, shuffled_order(1000, 8, 2));
  EXPECT_TRUE(shuffled_order(0, 7, 2).empty());
  EXPECT_THAT(shuffled_order(1, 7, 2), ElementsAre(0));
}

// 4 items in 24 orders, 24,000 draws: 1000 each, +-5 standard deviations (31 each).
TEST(ShuffledOrder, DrawsEveryOrderAlikeOften) {
  std::map<std::vector<std::uint32_t>, int> counts;
  for (std::uint64_t epoch = 0; epoch < 24'000; ++epoch) ++counts[shuffled_order(4, 1, epoch)];
  EXPECT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 155);
}

// Two items of 2 channels of 2x2: item 0 has pixels 0 and 255, item 1 51 (= 0.2) throughout.
ImageDataset two_items() {
  return {.name = "two",
          .channels = 2,
          .height = 2,
          .width = 2,
          .classes = 5,
          .pixels = {0, 255, 0, 255, 255, 255, 0, 0, 51, 51, 51, 51, 51, 51, 51, 51},
          .labels = {3, 4}};
}

TEST(Normalisation, MeasuresEachChannel) {
  const Normalisation measured = measure_normalisation(two_items());
  // Both channels hold 0 0 1 1 and 0.2 four times: mean 2.8 / 8 = 0.35,
  // mean square (2 + 0.16) / 8 = 0.27, variance 0.27 - 0.1225 = 0.1475.
  ASSERT_EQ(measured.mean.size(), 2u);
  for (const float mean : measured.mean) EXPECT_FLOAT_EQ(mean, 0.35f);
  for (const float deviation : measured.deviation) EXPECT_NEAR(deviation, std::sqrt(0.1475), 1e-6);
}

struct Batch {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
};

Batch batch_of(const ImageDataset& data, std::vector<std::uint32_t> items, std::int64_t batch,
               const Augmentation& augmentation = {}, std::uint64_t epoch = 0,
               const Normalisation& normalisation = {.mean = {0, 0.2f}, .deviation = {1, 2}}) {
  Batch filled;
  filled.images.assign(static_cast<std::size_t>(batch * data.channels * data.height * data.width),
                       -9);
  filled.labels.assign(static_cast<std::size_t>(batch), -9);
  fill_image_batch(data, items, batch, normalisation, augmentation, 1, epoch, filled.images,
                   filled.labels);
  return filled;
}

TEST(FillImageBatch, NormalisesInTheGivenOrderAndPadsAShortBatch) {
  const Batch batch = batch_of(two_items(), {1, 0}, 3);
  const std::vector<float> expected{0.2f, 0.2f, 0.2f, 0.2f, 0,    0,    0,     0,      // item 1
                                    0,    1,    0,    1,    0.4f, 0.4f, -0.1f, -0.1f,  // item 0
                                    0,    0,    0,    0,    0,    0,    0,     0};     // nothing
  ASSERT_EQ(batch.images.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_FLOAT_EQ(batch.images[i], expected[i]);
  EXPECT_THAT(batch.labels, ElementsAre(4, 3, -100));
}

TEST(FillImageBatch, AConstantChannelBecomesZeroNotInfinite) {
  const Batch batch =
      batch_of(two_items(), {1}, 1, {}, 0, {.mean = {0.2f, 0.2f}, .deviation = {0, 0}});
  for (const float value : batch.images) EXPECT_EQ(value, 0);
}

// One 3x3 image 1..9; every crop of it padded by 1, and every mirror, must be one of 9 * 2.
TEST(FillImageBatch, AugmentsByCropsAndMirrorsOnly) {
  ImageDataset data{.name = "",
                    .channels = 1,
                    .height = 3,
                    .width = 3,
                    .classes = 1,
                    .pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                    .labels = {0}};
  const auto crop = [&](int dy, int dx, bool mirrored) {
    std::vector<float> image;
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 3; ++x) {
        const int from_y = y + dy;
        const int from_x = (mirrored ? 2 - x : x) + dx;
        const bool inside = from_y >= 0 && from_y < 3 && from_x >= 0 && from_x < 3;
        image.push_back(inside ? static_cast<float>(from_y * 3 + from_x + 1) : 0.0f);
      }
    }
    return image;
  };
  std::set<std::vector<float>> legal;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      legal.insert(crop(dy, dx, false));
      legal.insert(crop(dy, dx, true));
    }
  }
  EXPECT_EQ(legal.size(), 18u);
  std::set<std::vector<float>> seen;
  for (std::uint64_t epoch = 0; epoch < 500; ++epoch) {
    Batch batch =
        batch_of(data, {0}, 1, {.pad = 1, .flip = true}, epoch, {.mean = {0}, .deviation = {1}});
    for (float& value : batch.images) value = std::round(value * 255);
    seen.insert(batch.images);
  }
  EXPECT_EQ(seen, legal);
}

TEST(FillImageBatch, AugmentationIsAFunctionOfTheItemNotOfItsPlace) {
  const ImageSplits splits = make_synthetic_images(3, 8, 8, 4, 20, 1);
  const Augmentation augmentation{.pad = 4, .flip = true};
  const Normalisation plain{.mean = {0, 0, 0}, .deviation = {1, 1, 1}};
  const Batch together = batch_of(splits.train, {5, 9, 13}, 3, augmentation, 2, plain);
  const Batch alone = batch_of(splits.train, {13}, 1, augmentation, 2, plain);
  EXPECT_TRUE(
      std::equal(alone.images.begin(), alone.images.end(), together.images.begin() + 2 * 192));
  const Batch later = batch_of(splits.train, {5, 9, 13}, 3, augmentation, 3, plain);
  EXPECT_NE(together.images, later.images);
}

TEST(SyntheticImages, AreAFunctionOfTheSeed) {
  const ImageSplits a = make_synthetic_images(3, 4, 5, 7, 50, 1);
  EXPECT_EQ(a.train.items(), 50);
  EXPECT_EQ(a.test.items(), 5);
  EXPECT_EQ(a.train.pixels.size(), 50u * 60);
  EXPECT_EQ(a.train.pixels, make_synthetic_images(3, 4, 5, 7, 50, 1).train.pixels);
  EXPECT_NE(a.train.pixels, make_synthetic_images(3, 4, 5, 7, 50, 2).train.pixels);
  EXPECT_NE(a.train.labels, make_synthetic_images(3, 4, 5, 7, 50, 2).train.labels);
  for (const std::int32_t label : a.train.labels) EXPECT_TRUE(label >= 0 && label < 7);
  EXPECT_EQ(std::set<std::int32_t>(a.train.labels.begin(), a.train.labels.end()).size(), 7u);
  EXPECT_THAT(error_of([] { (void)make_synthetic_images(3, 0, 4, 7, 50, 1); }),
              HasSubstr("at least 1"));
}

TEST(SyntheticText, HasItsVocabularyAndATenthForTesting) {
  const TextDataset text = make_synthetic_text(5, 1000, 3);
  EXPECT_EQ(text.train.size(), 900u);
  EXPECT_EQ(text.test.size(), 100u);
  EXPECT_EQ(std::set<std::int32_t>(text.train.begin(), text.train.end()),
            (std::set<std::int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(text.train, make_synthetic_text(5, 1000, 3).train);
  EXPECT_NE(text.train, make_synthetic_text(5, 1000, 4).train);
}

// 11 tokens in 2 streams of 5: 0 1 2 3 4 and 5 6 7 8 9. Windows of 2: (0 1 -> 1 2), (2 3 -> 3 4).
TEST(TextWindows, ReadParallelStreamsOneWindowAfterTheOther) {
  std::vector<std::int32_t> text(11);
  std::iota(text.begin(), text.end(), 0);
  const TextWindows windows(text, 2, 2);
  EXPECT_EQ(windows.windows(), 2);
  std::vector<std::int32_t> tokens(4);
  std::vector<std::int32_t> targets(4);
  windows.fill(0, tokens, targets);
  EXPECT_THAT(tokens, ElementsAre(0, 5, 1, 6));  // [T,B]
  EXPECT_THAT(targets, ElementsAre(1, 6, 2, 7));
  windows.fill(1, tokens, targets);
  EXPECT_THAT(tokens, ElementsAre(2, 7, 3, 8));
  EXPECT_THAT(targets, ElementsAre(3, 8, 4, 9));
  EXPECT_THROW(windows.fill(2, tokens, targets), base::Error);
}

TEST(TextWindows, OfOneTokenAndOfTheWholeText) {
  const std::vector<std::int32_t> text{4, 5, 6};
  EXPECT_EQ(TextWindows(text, 1, 1).windows(), 2);
  EXPECT_EQ(TextWindows(text, 1, 2).windows(), 1);
}

TEST(TextWindows, RefuseWhatDoesNotFitWithBothNumbers) {
  const std::vector<std::int32_t> text(10);
  EXPECT_THAT(error_of([&] { TextWindows(text, 2, 5); }), HasSubstr("need 12 tokens, found 10"));
  EXPECT_EQ(error_of([&] { TextWindows(text, 2, 4); }), "");
  EXPECT_THAT(error_of([&] { TextWindows(text, 2, 0); }), HasSubstr("at least 1"));
  EXPECT_THAT(error_of([&] { TextWindows(text, 2, -1); }), HasSubstr("at least 1"));
  EXPECT_THAT(error_of([&] { TextWindows(text, 0, 2); }), HasSubstr("at least 1"));
  EXPECT_THAT(error_of([&] { TextWindows(text, INT64_MAX, 2); }), HasSubstr("2^63"));
}

}  // namespace
}  // namespace reprise::runtime
