// IDX files (MNIST and its kin): a magic number of two zero bytes, the element type (8: unsigned
// byte) and the number of axes; the axes as big-endian 32-bit numbers; then the elements.

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "graph/types.h"
#include "runtime/byte_source.h"
#include "runtime/dataset.h"

namespace reprise::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDebianFolder = "/usr/share/datasets/fashion-mnist";
constexpr const char* kTrainImages = "train-images-idx3-ubyte";
constexpr const char* kDebianPackage = "dataset-fashion-mnist";

struct IdxFile {
  std::string name;
  std::vector<std::int64_t> axes;
  std::vector<std::uint8_t> bytes;
};

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// `stem` itself, or else with .gz behind.
fs::path find_idx(const fs::path& folder, const char* stem) {
  fs::path plain = folder / stem;
  if (is_there(plain)) return plain;
  fs::path gzip = folder / (std::string(stem) + ".gz");
  if (is_there(gzip)) return gzip;
  throw base::input_error("folder '{}' has neither {} nor {}.gz", folder.string(), stem, stem);
}

std::uint32_t read_big_endian(ByteSource& source, std::string_view what) {
  const std::vector<std::uint8_t> b = read_exactly(source, 4, what);
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
}

IdxFile read_idx(const fs::path& path, std::uint32_t axes) {
  const auto source = open_bytes(path);
  IdxFile file{.name = source->name(), .axes = {}, .bytes = {}};
  const std::uint32_t expected = 0x0800 + axes;
  const std::uint32_t magic = read_big_endian(*source, "the magic number");
  if (magic != expected) {
    throw base::input_error(
        "'{}': the magic number is {:#010x}, expected {:#010x} (bytes, {} axes)", file.name, magic,
        expected, axes);
  }
  std::int64_t count = 1;
  for (std::uint32_t axis = 0; axis < axes; ++axis) {
    file.axes.push_back(read_big_endian(*source, fmt::format("the size of axis {}", axis)));
    if (file.axes.back() == 0) throw base::input_error("'{}': axis {} is empty", file.name, axis);
    count = base::checked_mul(count, file.axes.back(),
                              fmt::format("'{}': number of elements", file.name));
  }
  file.bytes = read_exactly(*source, static_cast<std::uint64_t>(count),
                            fmt::format("shape {} of the header", graph::shape_text(file.axes)));
  require_end(*source, fmt::format("{} elements", count));
  return file;
}

ImageDataset read_pair(const fs::path& folder, const char* images_stem, const char* labels_stem) {
  IdxFile images = read_idx(find_idx(folder, images_stem), 3);
  const IdxFile labels = read_idx(find_idx(folder, labels_stem), 1);
  if (images.axes[0] != labels.axes[0]) {
    throw base::input_error("'{}' has {} images, '{}' has {} labels", images.name, images.axes[0],
                            labels.name, labels.axes[0]);
  }
  return {.name = folder.filename().string(),
          .channels = 1,
          .height = images.axes[1],
          .width = images.axes[2],
          .classes = 0,
          .pixels = std::move(images.bytes),
          .labels = {labels.bytes.begin(), labels.bytes.end()}};
}

// IDX does not say how many classes there are: as many as the training labels show.
void set_classes(ImageSplits& splits, const std::string& test_labels) {
  const auto& labels = splits.train.labels;
  const std::int64_t classes = std::int64_t{1} + *std::max_element(labels.begin(), labels.end());
  for (std::size_t i = 0; i < splits.test.labels.size(); ++i) {
    if (splits.test.labels[i] >= classes) {
      throw base::input_error("'{}': label {} of item {}; the training labels go up to {}",
                              test_labels, splits.test.labels[i], i, classes - 1);
    }
  }
  splits.train.classes = splits.test.classes = classes;
}

}  // namespace

ImageSplits load_idx(const fs::path& folder, TestPart test) {
  ImageSplits splits;
  splits.train = read_pair(folder, kTrainImages, "train-labels-idx1-ubyte");
  if (test == TestPart::kLoad) {
    splits.test = read_pair(folder, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    if (splits.train.height != splits.test.height || splits.train.width != splits.test.width) {
      throw base::input_error("folder '{}': training images are {}x{}, test images {}x{}",
                              folder.string(), splits.train.height, splits.train.width,
                              splits.test.height, splits.test.width);
    }
  }
  set_classes(splits, (folder / "t10k-labels-idx1-ubyte").string());
  return splits;
}

fs::path find_fashion_mnist() {
  std::vector<fs::path> places;
  if (const char* data = std::getenv("REPRISE_DATA"); data != nullptr && *data != '\0') {
    places = {fs::path(data), fs::path(data) / "fashion-mnist"};
  }
  places.emplace_back(kDebianFolder);
  std::string tried;
  for (const fs::path& place : places) {
    if (is_there(place / kTrainImages) || is_there(place / (std::string(kTrainImages) + ".gz"))) {
      return place;
    }
    tried += (tried.empty() ? "" : ", ") + place.string();
  }
  throw base::input_error(
      "Fashion-MNIST is not in {}; install the Debian package {}, or set REPRISE_DATA to a folder "
      "with its four IDX files",
      tried, kDebianPackage);
}

}  // namespace reprise::runtime
