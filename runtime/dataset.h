#pragma once

// Data sets and the order in which a training run sees them.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace reprise::runtime {

// Images with one label each, in memory as bytes.
struct ImageDataset {
  std::string name;
  std::int64_t channels = 0, height = 0, width = 0, classes = 0;
  std::vector<std::uint8_t> pixels;  // [items, C, H, W]
  std::vector<std::int32_t> labels;  // [items]
  [[nodiscard]] std::int64_t items() const { return static_cast<std::int64_t>(labels.size()); }
};

// A loader that is told to leave the test part out reads none of its files; `test` is empty then.
struct ImageSplits {
  ImageDataset train, test;
};
enum class TestPart : std::uint8_t { kLoad, kLeaveOut };

// IDX files (MNIST, Fashion-MNIST), plain or .gz: `folder` holds train-images-idx3-ubyte[.gz] and
// its three fellows. Throws Error(kInput) naming file, field, found and expected; also for
// truncated or trailing bytes. Memory is asked for as bytes arrive, never because a header says so.
[[nodiscard]] ImageSplits load_idx(const std::filesystem::path& folder,
                                   TestPart test = TestPart::kLoad);
// The folder of Fashion-MNIST: $REPRISE_DATA, $REPRISE_DATA/fashion-mnist, or where the Debian
// package dataset-fashion-mnist puts it. Throws Error(kInput) that lists the places and names the
// package.
[[nodiscard]] std::filesystem::path find_fashion_mnist();
// CIFAR-10 binary version: data_batch_1.bin ... data_batch_5.bin, test_batch.bin.
[[nodiscard]] ImageSplits load_cifar10(const std::filesystem::path& folder,
                                       TestPart test = TestPart::kLoad);
// Random pixels and labels, a pure function of the seed.
[[nodiscard]] ImageSplits make_synthetic_images(std::int64_t channels, std::int64_t height,
                                                std::int64_t width, std::int64_t classes,
                                                std::int64_t items, std::uint64_t seed);

// A text as bytes-to-token ids. The vocabulary is the set of byte values that occur, in byte order.
struct TextDataset {
  std::string name;
  std::int64_t vocabulary = 0;
  std::vector<std::int32_t> train, test;  // the last tenth is the test part
};
[[nodiscard]] TextDataset load_text(const std::filesystem::path& file);  // .gz too
[[nodiscard]] TextDataset make_synthetic_text(std::int64_t vocabulary, std::int64_t tokens,
                                              std::uint64_t seed);

// Per-channel mean and standard deviation of pixels / 255, for normalisation.
struct Normalisation {
  std::vector<float> mean, deviation;
};
[[nodiscard]] Normalisation measure_normalisation(const ImageDataset& images);

struct Augmentation {
  std::int64_t pad = 0;  // zero-pad each side by this many pixels, then crop back at random
  bool flip = false;     // mirror left-right with probability 1/2
};

// A permutation of [0, items) that is a pure function of (seed, epoch).
[[nodiscard]] std::vector<std::uint32_t> shuffled_order(std::int64_t items, std::uint64_t seed,
                                                        std::uint64_t epoch);

// Fills one batch: images[i] = normalise(augment(pixels[order[i]])). The augmentation of an item is
// a pure function of (seed, epoch, item). A short batch (fewer than `batch` items) is padded by
// zeros and labels -100.
void fill_image_batch(const ImageDataset& data, std::span<const std::uint32_t> items,
                      std::int64_t batch, const Normalisation& normalisation,
                      const Augmentation& augmentation, std::uint64_t seed, std::uint64_t epoch,
                      std::span<float> images, std::span<std::int32_t> labels);

// Windows over a text for `batch` parallel streams: stream b reads part b of the text, window w its
// tokens [w * seq_len, (w + 1) * seq_len), targets one further. Tokens [T,B]. Windows that do not
// fit are dropped.
class TextWindows {
 public:
  // Throws Error(kInput) when the text is too short for one window: names tokens needed and found.
  TextWindows(std::span<const std::int32_t> tokens, std::int64_t batch, std::int64_t seq_len);
  [[nodiscard]] std::int64_t windows() const;
  void fill(std::int64_t window, std::span<std::int32_t> tokens,
            std::span<std::int32_t> targets) const;

 private:
  std::span<const std::int32_t> tokens_;
  std::int64_t batch_, seq_len_, stream_length_;
};

}  // namespace reprise::runtime
