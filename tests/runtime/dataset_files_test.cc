// Data files: read as documented, and every kind of damage named.

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "runtime/arena.h"
#include "runtime/byte_source.h"
#include "runtime/dataset.h"
#include "tests/runtime/image_files.h"
#include "tests/runtime/temp_folder.h"

namespace reprise::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

constexpr const char* kImages = "train-images-idx3-ubyte";
constexpr const char* kLabels = "train-labels-idx1-ubyte";

TEST(Idx, ReadsImagesAndLabels) {
  TempFolder folder;
  write_idx_folder(folder);
  const ImageSplits splits = load_idx(folder.path());
  EXPECT_EQ(splits.train.items(), 3);
  EXPECT_EQ(splits.train.channels, 1);
  EXPECT_EQ(splits.train.height, 2);
  EXPECT_EQ(splits.train.width, 2);
  EXPECT_EQ(splits.train.classes, 3);
  EXPECT_THAT(splits.train.labels, ElementsAre(0, 2, 1));
  EXPECT_THAT(splits.train.pixels, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(splits.test.labels, ElementsAre(2));
  EXPECT_THAT(splits.test.pixels, ElementsAre(9, 9, 9, 9));
  EXPECT_EQ(splits.test.classes, 3);
}

TEST(Idx, LeavesTheTestPartOutWhenTold) {
  TempFolder folder;
  write_idx_folder(folder);
  for (const char* stem : {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"})
    std::filesystem::remove(folder / stem);
  const ImageSplits splits = load_idx(folder.path(), TestPart::kLeaveOut);
  EXPECT_EQ(splits.train.classes, 3);
  EXPECT_EQ(splits.test.items(), 0);
}

TEST(Idx, ReadsGzipFilesAndSeveralStreamsInOne) {
  TempFolder folder;
  write_idx_folder(folder);
  for (const char* stem : {kImages, kLabels}) {
    const std::string bytes = read_file(folder / stem);
    std::filesystem::remove(folder / stem);
    // Two gzip streams, one after the other, are one file.
    write_file(folder / (std::string(stem) + ".gz"),
               gzip(bytes.substr(0, 5)) + gzip(bytes.substr(5)));
  }
  const ImageSplits splits = load_idx(folder.path());
  EXPECT_THAT(splits.train.labels, ElementsAre(0, 2, 1));
  EXPECT_EQ(splits.train.pixels.back(), 11);
}

class IdxDamage : public ::testing::Test {
 protected:
  void SetUp() override { write_idx_folder(folder_); }
  std::string error_with(const char* file, const std::string& bytes) {
    write_file(folder_ / file, bytes);
    const std::string message = error_of([&] { (void)load_idx(folder_.path()); });
    EXPECT_THAT(message, HasSubstr(file));
    return message;
  }
  TempFolder folder_;
};

TEST_F(IdxDamage, CutAtAnyByteOrTooLong) {
  for (const auto& [file, whole] :
       {std::pair(kImages, train_images()), std::pair(kLabels, train_labels())}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      EXPECT_THAT(error_with(file, whole.substr(0, length)), HasSubstr("ends early")) << length;
    }
    EXPECT_THAT(error_with(file, whole + "x"), HasSubstr("goes on behind its end"));
    write_file(folder_ / file, whole);
  }
  EXPECT_EQ(error_of([&] { (void)load_idx(folder_.path()); }), "");
}

TEST_F(IdxDamage, GzipCutAtAnyByteOrTooLong) {
  std::filesystem::remove(folder_ / kImages);
  const std::string name = std::string(kImages) + ".gz";
  const std::string whole = gzip(train_images());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(error_with(name.c_str(), whole.substr(0, length)), "") << length;
  }
  EXPECT_THAT(error_with(name.c_str(), whole + "x"), HasSubstr("goes on behind its end"));
}

TEST_F(IdxDamage, NotGzipAndDamagedGzip) {
  std::filesystem::remove(folder_ / kImages);
  const std::string name = std::string(kImages) + ".gz";
  EXPECT_THAT(error_with(name.c_str(), train_images()), HasSubstr("not in gzip form"));
  std::string whole = gzip(train_images());
  whole[whole.size() - 6] = static_cast<char>(whole[whole.size() - 6] ^ 1);  // its checksum
  EXPECT_THAT(error_with(name.c_str(), whole), HasSubstr("damaged"));
}

TEST_F(IdxDamage, WrongMagic) {
  std::string bytes = train_images();
  bytes[2] = 0x0D;  // floats
  EXPECT_THAT(error_with(kImages, bytes),
              HasSubstr("the magic number is 0x00000d03, expected 0x00000803"));
  EXPECT_THAT(error_with(kImages, train_labels()), HasSubstr("0x00000801, expected 0x00000803"));
}

TEST_F(IdxDamage, EmptyAxes) {
  EXPECT_THAT(error_with(kImages, idx({0, 2, 2}, "")), HasSubstr("axis 0 is empty"));
  EXPECT_THAT(error_with(kImages, idx({3, 2, 0}, "")), HasSubstr("axis 2 is empty"));
}

TEST_F(IdxDamage, HostileSizesAllocateNothing) {
  const Bytes before = peak_resident_bytes();
  EXPECT_THAT(error_with(kImages, idx({UINT32_MAX, UINT32_MAX, UINT32_MAX}, "x")),
              HasSubstr("exceeds 2^63"));
  EXPECT_THAT(error_with(kImages, idx({UINT32_MAX, 1, 1}, "x")),
              HasSubstr("takes 4294967295 bytes, 1 are there"));
  EXPECT_THAT(error_with(kImages, idx({UINT32_MAX, 0x7FFFFFFF, 1}, "x")), HasSubstr("1 are there"));
  EXPECT_LT(peak_resident_bytes() - before, 64 * base::kMiB);
}

TEST_F(IdxDamage, CountsThatDisagree) {
  EXPECT_THAT(error_with(kLabels, idx({2}, std::string("\0\1", 2))),
              AllOf(HasSubstr("has 3 images"), HasSubstr("has 2 labels")));
}

TEST_F(IdxDamage, ImageSizesThatDisagree) {
  write_file(folder_ / "t10k-images-idx3-ubyte", idx({1, 1, 2}, "xy"));
  EXPECT_THAT(error_of([&] { (void)load_idx(folder_.path()); }),
              HasSubstr("training images are 2x2, test images 1x2"));
}

TEST_F(IdxDamage, ATestLabelThatTrainingNeverShows) {
  EXPECT_THAT(error_with("t10k-labels-idx1-ubyte", idx({1}, "\3")),
              HasSubstr("label 3 of item 0; the training labels go up to 2"));
}

TEST_F(IdxDamage, FilesThatAreNotThereOrFolders) {
  std::filesystem::remove(folder_ / kLabels);
  EXPECT_THAT(error_of([&] { (void)load_idx(folder_.path()); }),
              HasSubstr("has neither train-labels-idx1-ubyte nor train-labels-idx1-ubyte.gz"));
  std::filesystem::create_directory(folder_ / kLabels);
  EXPECT_THAT(error_of([&] { (void)load_idx(folder_.path()); }), HasSubstr("it is a folder"));
}

TEST(FashionMnist, IsFoundThroughTheVariableOrNamesThePackage) {
  TempFolder folder;
  write_idx_folder(folder);
  const char* before = std::getenv("REPRISE_DATA");
  const std::string saved = before != nullptr ? before : "";
  setenv("REPRISE_DATA", folder.path().c_str(), 1);
  EXPECT_EQ(find_fashion_mnist(), folder.path());
  setenv("REPRISE_DATA", (folder / "nowhere").c_str(), 1);
  const std::string message = error_of([] { (void)find_fashion_mnist(); });
  if (!message.empty()) {  // else it is installed
    EXPECT_THAT(message, AllOf(HasSubstr("dataset-fashion-mnist"), HasSubstr("nowhere")));
  }
  before != nullptr ? setenv("REPRISE_DATA", saved.c_str(), 1) : unsetenv("REPRISE_DATA");
}

TEST(FashionMnist, HasItsPublishedSizes) {
  std::filesystem::path folder;
  if (!error_of([&] { folder = find_fashion_mnist(); }).empty()) {
    GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  }
  const ImageSplits splits = load_idx(folder);
  EXPECT_EQ(splits.train.items(), 60'000);
  EXPECT_EQ(splits.test.items(), 10'000);
  EXPECT_EQ(splits.train.height * splits.train.width, 28 * 28);
  EXPECT_EQ(splits.train.classes, 10);
  // Commonly published: mean 0.2860, standard deviation 0.3530.
  const Normalisation normalisation = measure_normalisation(splits.train);
  EXPECT_NEAR(normalisation.mean[0], 0.2860, 1e-4);
  EXPECT_NEAR(normalisation.deviation[0], 0.3530, 1e-4);
}

std::string cifar_record(char label, char pixel) {
  return std::string(1, label) + std::string(3072, pixel);
}

void write_cifar_folder(const TempFolder& folder) {
  for (char batch = 1; batch <= 5; ++batch) {
    write_file(folder / fmt::format("data_batch_{}.bin", int{batch}), cifar_record(batch, batch));
  }
  write_file(folder / "test_batch.bin", cifar_record(9, 7) + cifar_record(0, 8));
}

TEST(Cifar10, ReadsItsSixFiles) {
  TempFolder folder;
  write_cifar_folder(folder);
  const ImageSplits splits = load_cifar10(folder.path());
  EXPECT_THAT(splits.train.labels, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(splits.test.labels, ElementsAre(9, 0));
  EXPECT_EQ(splits.train.pixels.size(), 5u * 3072);
  EXPECT_EQ(splits.train.pixels[3072], 2);
  EXPECT_EQ(splits.test.pixels.back(), 8);
  EXPECT_EQ(splits.train.channels, 3);
  EXPECT_EQ(splits.train.classes, 10);
}

TEST(Cifar10, NamesDamage) {
  TempFolder folder;
  write_cifar_folder(folder);
  const auto error_with = [&](const std::string& bytes) {
    write_file(folder / "data_batch_3.bin", bytes);
    const std::string message = error_of([&] { (void)load_cifar10(folder.path()); });
    EXPECT_THAT(message, HasSubstr("data_batch_3.bin"));
    return message;
  };
  EXPECT_THAT(error_with(""), HasSubstr("has 0 bytes, expected a multiple of 3073"));
  EXPECT_THAT(error_with(cifar_record(1, 1).substr(1)), HasSubstr("has 3072 bytes"));
  EXPECT_THAT(error_with(cifar_record(1, 1) + "x"), HasSubstr("has 3074 bytes"));
  EXPECT_THAT(error_with(cifar_record(1, 1) + cifar_record(10, 1)),
              HasSubstr("label 10 of record 1; expected 0 to 9"));
  std::filesystem::remove(folder / "data_batch_3.bin");
  EXPECT_THAT(error_of([&] { (void)load_cifar10(folder.path()); }), HasSubstr("No such file"));
}

TEST(Text, NumbersTheBytesThatOccurInOrder) {
  TempFolder folder;
  write_file(folder / "t.txt",
             "banana\xFF"
             "aab");  // a b n 0xFF -> 0 1 2 3
  const TextDataset text = load_text(folder / "t.txt");
  EXPECT_EQ(text.vocabulary, 4);
  EXPECT_THAT(text.train, ElementsAre(1, 0, 2, 0, 2, 0, 3, 0, 0));  // 10 bytes: one for testing
  EXPECT_THAT(text.test, ElementsAre(1));
  write_file(folder / "t.txt.gz", gzip("banana\xFF"
                                       "aab"));
  EXPECT_EQ(load_text(folder / "t.txt.gz").train, text.train);
}

TEST(Text, NamesFilesThatAreNone) {
  TempFolder folder;
  write_file(folder / "empty", "");
  EXPECT_THAT(error_of([&] { (void)load_text(folder / "empty"); }), HasSubstr("empty' is empty"));
  EXPECT_THAT(error_of([&] { (void)load_text(folder.path()); }), HasSubstr("it is a folder"));
  EXPECT_THAT(error_of([&] { (void)load_text(folder / "absent"); }), HasSubstr("No such file"));
  write_file(folder / "t.gz", "plain");
  EXPECT_THAT(error_of([&] { (void)load_text(folder / "t.gz"); }), HasSubstr("not in gzip form"));
}

TEST(ByteSource, ReadsAcrossItsChunksExactly) {
  TempFolder folder;
  // 3 MiB + 5 of bytes that do not repeat every chunk; as they are, and through gzip.
  std::string bytes(3 * 1048576 + 5, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 7);
  write_file(folder / "a", bytes);
  write_file(folder / "a.gz", gzip(bytes));
  for (const char* name : {"a", "a.gz"}) {
    const auto source = open_bytes(folder / name);
    const auto first = read_exactly(*source, 2'000'000, "first");
    const auto rest = read_rest(*source);
    require_end(*source, "nothing");
    std::string all(first.begin(), first.end());
    all.append(rest.begin(), rest.end());
    EXPECT_TRUE(all == bytes) << name;
  }
}

}  // namespace
}  // namespace reprise::runtime
