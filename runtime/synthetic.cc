// Data made up from a seed.

#include <algorithm>

#include "base/error.h"
#include "graph/random.h"
#include "runtime/dataset.h"
#include "runtime/random_streams.h"

namespace reprise::runtime {
namespace {

// Byte i of the stream: four to a 32-bit draw.
class RandomBytes {
 public:
  RandomBytes(const graph::StepContext& context, std::uint32_t stream)
      : context_(context), stream_(stream) {}
  std::uint8_t operator[](std::uint64_t index) {
    if (index / 4 != block_) {
      block_ = index / 4;
      bits_ = graph::random_bits(context_, stream_, block_);
    }
    return static_cast<std::uint8_t>(bits_ >> (8 * (index % 4)));
  }

 private:
  graph::StepContext context_;
  std::uint32_t stream_;
  std::uint64_t block_ = UINT64_MAX;
  std::uint32_t bits_ = 0;
};

// A quarter of a pixel is its class's pattern, the rest is noise, so that there is something to
// learn.
ImageDataset make_part(ImageDataset part, std::int64_t items, std::uint64_t seed,
                       std::uint64_t which) {
  const graph::StepContext context{.seed = seed, .step = which};
  const auto pixels = static_cast<std::uint64_t>(part.channels * part.height * part.width);
  const auto count = static_cast<std::uint64_t>(items);
  part.labels.reserve(count);
  part.pixels.reserve(count * pixels);
  RandomBytes noise(context, kPixelStream);
  RandomBytes pattern({.seed = seed}, kPrototypeStream);
  for (std::uint64_t item = 0; item < count; ++item) {
    const std::uint64_t label =
        graph::random_bits(context, kLabelStream, item) % static_cast<std::uint64_t>(part.classes);
    part.labels.push_back(static_cast<std::int32_t>(label));
    for (std::uint64_t i = 0; i < pixels; ++i) {
      const int value = 3 * noise[item * pixels + i] + pattern[label * pixels + i];
      part.pixels.push_back(static_cast<std::uint8_t>(value / 4));
    }
  }
  return part;
}

}  // namespace

ImageSplits make_synthetic_images(std::int64_t channels, std::int64_t height, std::int64_t width,
                                  std::int64_t classes, std::int64_t items, std::uint64_t seed) {
  if (channels < 1 || height < 1 || width < 1 || classes < 1 || items < 1) {
    throw base::input_error(
        "synthetic images: {}x{}x{} pixels, {} classes and {} items must all be at least 1",
        channels, height, width, classes, items);
  }
  const std::int64_t pixels =
      base::checked_mul(base::checked_mul(channels, height, "pixels"), width, "pixels");
  (void)base::checked_mul(pixels, items, "synthetic images: bytes");
  const ImageDataset empty{.name = "synthetic",
                           .channels = channels,
                           .height = height,
                           .width = width,
                           .classes = classes,
                           .pixels = {},
                           .labels = {}};
  return {.train = make_part(empty, items, seed, 0),
          .test = make_part(empty, std::max<std::int64_t>(1, items / 10), seed, 1)};
}

TextDataset make_synthetic_text(std::int64_t vocabulary, std::int64_t tokens, std::uint64_t seed) {
  if (vocabulary < 1 || vocabulary > INT32_MAX || tokens < 1) {
    throw base::input_error("synthetic text: vocabulary {} and {} tokens must be at least 1",
                            vocabulary, tokens);
  }
  // Half of the tokens follow from the one before (the next in the alphabet), half are drawn.
  std::vector<std::int32_t> all;
  all.reserve(static_cast<std::size_t>(tokens));
  std::uint64_t last = 0;
  for (std::int64_t i = 0; i < tokens; ++i) {
    const std::uint32_t bits =
        graph::random_bits({.seed = seed}, kTokenStream, static_cast<std::uint64_t>(i));
    last = ((bits & 1) != 0 ? bits >> 1 : last + 1) % static_cast<std::uint64_t>(vocabulary);
    all.push_back(static_cast<std::int32_t>(last));
  }
  const std::ptrdiff_t test = static_cast<std::ptrdiff_t>(tokens / 10);
  return {.name = "synthetic",
          .vocabulary = vocabulary,
          .train = {all.begin(), all.end() - test},
          .test = {all.end() - test, all.end()}};
}

}  // namespace reprise::runtime
