// CIFAR-10, binary version: records of one label byte and 3 x 32 x 32 pixel bytes (channels first).

#include "base/error.h"
#include "runtime/byte_source.h"
#include "runtime/dataset.h"

namespace reprise::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPixels = 3 * 32 * 32;
constexpr std::size_t kRecord = 1 + kPixels;
constexpr std::int32_t kClasses = 10;

void append_records(const fs::path& path, ImageDataset& data) {
  const auto source = open_bytes(path);
  const std::vector<std::uint8_t> bytes = read_rest(*source);
  if (bytes.empty() || bytes.size() % kRecord != 0) {
    throw base::input_error(
        "'{}' has {} bytes, expected a multiple of {} (label and 3x32x32 pixels)", source->name(),
        bytes.size(), kRecord);
  }
  data.pixels.reserve(data.pixels.size() + bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += kRecord) {
    if (bytes[at] >= kClasses) {
      throw base::input_error("'{}': label {} of record {}; expected 0 to {}", source->name(),
                              bytes[at], at / kRecord, kClasses - 1);
    }
    const auto pixels = bytes.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    data.labels.push_back(bytes[at]);
    data.pixels.insert(data.pixels.end(), pixels, pixels + kPixels);
  }
}

ImageDataset empty_set() {
  return {.name = "cifar10",
          .channels = 3,
          .height = 32,
          .width = 32,
          .classes = kClasses,
          .pixels = {},
          .labels = {}};
}

}  // namespace

ImageSplits load_cifar10(const fs::path& folder, TestPart test) {
  ImageSplits splits{.train = empty_set(), .test = empty_set()};
  for (int batch = 1; batch <= 5; ++batch) {
    append_records(folder / fmt::format("data_batch_{}.bin", batch), splits.train);
  }
  if (test == TestPart::kLoad) append_records(folder / "test_batch.bin", splits.test);
  return splits;
}

}  // namespace reprise::runtime
