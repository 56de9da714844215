// From images in memory to the batches of a step.

#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "graph/random.h"
#include "runtime/dataset.h"
#include "runtime/random_streams.h"

namespace reprise::runtime {
namespace {

constexpr std::int32_t kIgnoredLabel = -100;

std::uint64_t random_64(const graph::StepContext& context, std::uint32_t stream,
                        std::uint64_t index) {
  const std::uint64_t high = graph::random_bits(context, stream, 2 * index);
  return high << 32 | graph::random_bits(context, stream, 2 * index + 1);
}

// Where the crop of a padded image starts, and whether it is mirrored.
struct Placement {
  std::int64_t dy = 0;
  std::int64_t dx = 0;
  bool mirrored = false;
};

Placement place(const Augmentation& augmentation, const graph::StepContext& context,
                std::uint32_t item) {
  const auto draw = [&](std::uint64_t which) {
    return graph::random_bits(context, kAugmentationStream, std::uint64_t{item} * 4 + which);
  };
  const std::int64_t offsets = 2 * augmentation.pad + 1;
  return {.dy = draw(0) % offsets - augmentation.pad,
          .dx = draw(1) % offsets - augmentation.pad,
          .mirrored = augmentation.flip && (draw(2) & 1) != 0};
}

// One channel: every byte value's normalised form, looked up instead of computed.
std::array<float, 256> byte_table(float mean, float deviation) {
  std::array<float, 256> table{};
  const float divisor = deviation > 0 ? deviation : 1.0f;  // a constant channel becomes zero
  for (std::size_t byte = 0; byte < table.size(); ++byte) {
    table[byte] = (static_cast<float>(byte) / 255.0f - mean) / divisor;
  }
  return table;
}

void fill_plane(const std::uint8_t* pixels, std::int64_t height, std::int64_t width,
                const Placement& placement, const std::array<float, 256>& table, float* out) {
  for (std::int64_t y = 0; y < height; ++y) {
    const std::int64_t from_y = y + placement.dy;
    for (std::int64_t x = 0; x < width; ++x) {
      const std::int64_t from_x = (placement.mirrored ? width - 1 - x : x) + placement.dx;
      const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
      *out++ = table[inside ? pixels[from_y * width + from_x] : 0];
    }
  }
}

}  // namespace

Normalisation measure_normalisation(const ImageDataset& images) {
  Normalisation result;
  const std::int64_t plane = images.height * images.width;
  const auto count = static_cast<double>(images.items() * plane);
  for (std::int64_t channel = 0; channel < images.channels; ++channel) {
    // Whole numbers, so that the sums are exact in any order.
    std::uint64_t sum = 0;
    std::uint64_t squares = 0;
    for (std::int64_t item = 0; item < images.items(); ++item) {
      const std::uint8_t* pixels =
          images.pixels.data() + (item * images.channels + channel) * plane;
      for (std::int64_t i = 0; i < plane; ++i) {
        sum += pixels[i];
        squares += std::uint64_t{pixels[i]} * pixels[i];
      }
    }
    const double mean = static_cast<double>(sum) / count;
    const double variance = static_cast<double>(squares) / count - mean * mean;
    result.mean.push_back(static_cast<float>(mean / 255));
    result.deviation.push_back(static_cast<float>(std::sqrt(std::max(0.0, variance)) / 255));
  }
  return result;
}

std::vector<std::uint32_t> shuffled_order(std::int64_t items, std::uint64_t seed,
                                          std::uint64_t epoch) {
  REPRISE_CHECK(items >= 0 && items <= UINT32_MAX, "{} items", items);
  const graph::StepContext context{.seed = seed, .step = epoch};
  std::vector<std::uint32_t> order(static_cast<std::size_t>(items));
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t left = order.size(); left > 1; --left) {
    // 64 bits modulo at most 2^32: the bias is below 2^-32.
    std::swap(order[left - 1], order[random_64(context, kShuffleStream, left) % left]);
  }
  return order;
}

void fill_image_batch(const ImageDataset& data, std::span<const std::uint32_t> items,
                      std::int64_t batch, const Normalisation& normalisation,
                      const Augmentation& augmentation, std::uint64_t seed, std::uint64_t epoch,
                      std::span<float> images, std::span<std::int32_t> labels) {
  const std::int64_t plane = data.height * data.width;
  const auto image = static_cast<std::size_t>(data.channels * plane);
  REPRISE_CHECK(static_cast<std::int64_t>(items.size()) <= batch &&
                    images.size() == static_cast<std::size_t>(batch) * image &&
                    labels.size() == static_cast<std::size_t>(batch),
                "{} items for a batch of {}; buffers of {} and {} elements", items.size(), batch,
                images.size(), labels.size());
  const graph::StepContext context{.seed = seed, .step = epoch};
  std::vector<std::array<float, 256>> tables;
  for (std::size_t channel = 0; channel < normalisation.mean.size(); ++channel) {
    tables.push_back(byte_table(normalisation.mean[channel], normalisation.deviation[channel]));
  }
  float* out = images.data();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Placement placement = place(augmentation, context, items[i]);
    const std::uint8_t* pixels = data.pixels.data() + items[i] * image;
    for (std::int64_t channel = 0; channel < data.channels; ++channel) {
      fill_plane(pixels + channel * plane, data.height, data.width, placement,
                 tables[static_cast<std::size_t>(channel)], out);
      out += plane;
    }
    labels[i] = data.labels[items[i]];
  }
  std::fill(out, images.data() + images.size(), 0.0f);
  std::fill(labels.begin() + static_cast<std::ptrdiff_t>(items.size()), labels.end(),
            kIgnoredLabel);
}

}  // namespace reprise::runtime
