#include "runtime/snapshot.h"

#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "tests/runtime/temp_folder.h"

namespace reprise::runtime {
namespace {

using graph::Role;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::read_file;
using testing::TempFolder;
using testing::write_file;

SnapshotTensor tensor(const std::string& name, Role role, std::byte fill) {
  return {{name, graph::DType::kF32, {2}, std::vector<std::byte>(8, fill)}, role};
}

Snapshot snapshot_at(std::uint64_t steps) {
  Snapshot snapshot;
  snapshot.tensors = {tensor("conv.weight", Role::kParameter, std::byte{1}),
                      tensor("conv.weight.momentum", Role::kOptimizerState, std::byte{2}),
                      tensor("bn.running_mean", Role::kState, std::byte{3})};
  // 2^64 - 1: the position is exact beyond what a double holds.
  snapshot.position = {.steps = steps, .epoch = 3, .batch_in_epoch = 17, .seed = UINT64_MAX};
  snapshot.config = {{"model", "resnet20"}, {"lr", "0.1"}};
  return snapshot;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Snapshot, LoadsWhatWasSaved) {
  TempFolder folder;
  const auto path = save_snapshot(folder / "run", snapshot_at(120));
  EXPECT_EQ(path, folder / "run" / "snapshot-120.safetensors");
  for (const auto& from : {path, folder / "run"}) {
    const Snapshot loaded = load_latest_snapshot(from);
    EXPECT_EQ(loaded.position, snapshot_at(120).position);
    EXPECT_EQ(loaded.config, snapshot_at(120).config);
    ASSERT_EQ(loaded.tensors.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(loaded.tensors[i].role, snapshot_at(120).tensors[i].role);
      EXPECT_EQ(loaded.tensors[i].tensor.name, snapshot_at(120).tensors[i].tensor.name);
      EXPECT_EQ(loaded.tensors[i].tensor.data, snapshot_at(120).tensors[i].tensor.data);
    }
  }
}

// docs/snapshot_format.md shows this very file.
TEST(Snapshot, MatchesTheDumpInItsDocumentation) {
  const auto floats = [](const std::string& name, std::vector<float> values, Role role) {
    const auto bytes = std::as_bytes(std::span(values));
    return SnapshotTensor{{name,
                           graph::DType::kF32,
                           {static_cast<graph::Dim>(values.size())},
                           {bytes.begin(), bytes.end()}},
                          role};
  };
  Snapshot snapshot;
  snapshot.tensors = {floats("w", {1, -0.5f}, Role::kParameter),
                      floats("w.momentum", {0.25f, 0}, Role::kOptimizerState)};
  snapshot.position = {.steps = 3, .epoch = 0, .batch_in_epoch = 3, .seed = 1};
  snapshot.config = {{"model", "mlp"}};
  TempFolder folder;
  const std::string file = read_file(save_snapshot(folder.path(), snapshot));

  // Lines of "00000000: 6001 0000 ...  text"
  std::ifstream page(std::filesystem::path(REPRISE_TEST_DATA) / "../../docs/snapshot_format.md");
  std::string dumped;
  for (std::string line; std::getline(page, line);) {
    if (line.size() < 10 || line.substr(8, 2) != ": ") continue;
    std::string digits;
    for (const char c : line.substr(10, 39)) {
      if (c != ' ') digits += c;
    }
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
      dumped += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    }
  }
  EXPECT_EQ(dumped, file);
}

TEST(Snapshot, WeightsAreWithoutOptimizerState) {
  TempFolder folder;
  save_snapshot(folder.path(), snapshot_at(1));
  const TensorFile weights = read_safetensors(folder / "weights.safetensors");
  std::vector<std::string> names;
  for (const TensorEntry& entry : weights.tensors) names.push_back(entry.name);
  EXPECT_THAT(names, ElementsAre("conv.weight", "bn.running_mean"));
  EXPECT_THAT(error_of([&] { (void)load_latest_snapshot(folder / "weights.safetensors"); }),
              HasSubstr("holds weights, not a snapshot to resume from"));
}

TEST(Snapshot, TheNewestTwoStayByNumberNotByName) {
  TempFolder folder;
  for (const std::uint64_t steps : {8, 9, 10, 100})
    save_snapshot(folder.path(), snapshot_at(steps));
  EXPECT_THAT(
      names_in(folder.path()),
      ElementsAre("snapshot-10.safetensors", "snapshot-100.safetensors", "weights.safetensors"));
  EXPECT_EQ(load_latest_snapshot(folder.path()).position.steps, 100u);
  EXPECT_EQ(newest_snapshot(folder.path()), folder / "snapshot-100.safetensors");
}

TEST(Snapshot, NeverRemovesTheOneJustWrittenNorOnesOfMoreSteps) {
  TempFolder folder;
  save_snapshot(folder.path(), snapshot_at(1000));
  save_snapshot(folder.path(), snapshot_at(2000));
  save_snapshot(folder.path(), snapshot_at(10));
  EXPECT_THAT(names_in(folder.path()),
              ElementsAre("snapshot-10.safetensors", "snapshot-1000.safetensors",
                          "snapshot-2000.safetensors", "weights.safetensors"));
}

TEST(Snapshot, RemovesLeftoversOfKilledSaversAndNothingElse) {
  TempFolder folder;
  write_file(folder / ".snapshot-3.safetensors.tmp.99.0", "half");
  write_file(folder / ".weights.safetensors.tmp.99.1", "half");
  write_file(folder / "snapshot-best.safetensors", "the user's");
  write_file(folder / ".notes.tmp.txt", "the user's");
  save_snapshot(folder.path(), snapshot_at(5));
  EXPECT_THAT(names_in(folder.path()),
              ElementsAre(".notes.tmp.txt", "snapshot-5.safetensors", "snapshot-best.safetensors",
                          "weights.safetensors"));
}

TEST(Snapshot, FoldersWithoutOneAreNamed) {
  TempFolder folder;
  EXPECT_EQ(newest_snapshot(folder.path()), std::nullopt);
  EXPECT_EQ(newest_snapshot(folder / "absent"), std::nullopt);
  EXPECT_THAT(error_of([&] { (void)load_latest_snapshot(folder.path()); }),
              HasSubstr("' has no snapshot-<steps>.safetensors"));
  EXPECT_THAT(error_of([&] { (void)load_latest_snapshot(folder / "absent"); }),
              HasSubstr("No such file"));
}

TEST(Snapshot, AFolderThatCannotBeMadeIsNamed) {
  TempFolder folder;
  write_file(folder / "file", "x");
  EXPECT_THAT(error_of([&] { save_snapshot(folder / "file" / "run", snapshot_at(1)); },
                       base::ErrorKind::kDevice),
              HasSubstr("cannot make folder"));
}

TEST(Snapshot, WhatIsMissingOrForeignIsNamed) {
  TempFolder folder;
  const auto path = folder / "snapshot-1.safetensors";
  const auto error_with = [&](const std::function<void(TensorFile&)>& damage) {
    save_snapshot(folder.path(), snapshot_at(1));
    TensorFile file = read_safetensors(path);
    damage(file);
    write_safetensors(path, file);
    const std::string message = error_of([&] { (void)load_latest_snapshot(path); });
    EXPECT_THAT(message, HasSubstr(path.string()));
    return message;
  };
  EXPECT_THAT(error_with([](TensorFile& f) { f.metadata.clear(); }), HasSubstr("made elsewhere"));
  EXPECT_THAT(error_with([](TensorFile& f) { f.metadata["reprise.format"] = "2"; }),
              HasSubstr("snapshot format 2; this program reads format 1"));
  EXPECT_THAT(error_with([](TensorFile& f) { f.metadata.erase("reprise.epoch"); }),
              HasSubstr("metadata 'reprise.epoch' is missing"));
  for (const char* text : {"-1", "1.5", "", "x", "1 ", "18446744073709551616"}) {
    EXPECT_THAT(error_with([&](TensorFile& f) { f.metadata["reprise.steps"] = text; }),
                HasSubstr(fmt::format("reprise.steps is '{}', not a number", text)));
  }
  EXPECT_THAT(error_with([](TensorFile& f) { f.metadata.erase("role/conv.weight"); }),
              HasSubstr("tensor 'conv.weight' has no role"));
  EXPECT_THAT(error_with([](TensorFile& f) { f.metadata["role/conv.weight"] = "gradient"; }),
              HasSubstr("tensor 'conv.weight' has role 'gradient'"));
}

TEST(Snapshot, OneBitThatChangedAnywhereIsRefused) {
  const TempFolder folder;
  const auto path = save_snapshot(folder.path(), snapshot_at(1));
  std::ifstream file(path, std::ios::binary);
  const std::string good(std::istreambuf_iterator<char>(file), {});
  for (std::size_t at = 8; at < good.size(); ++at) {  // the header, then the elements
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_NE(error_of([&] { (void)load_latest_snapshot(path); }), "") << "byte " << at;
  }
}

TEST(Snapshot, FindTensorNamesBothShapes) {
  const Snapshot snapshot = snapshot_at(1);
  EXPECT_EQ(find_tensor(snapshot, "conv.weight", graph::DType::kF32, {2}, "s").name, "conv.weight");
  EXPECT_EQ(error_of([&] {
              (void)find_tensor(snapshot, "conv.weight", graph::DType::kF32, {2, 1}, "s");
            }),
            "'s': tensor 'conv.weight' is f32[2]; the model has f32[2,1]");
  EXPECT_EQ(
      error_of([&] { (void)find_tensor(snapshot, "conv.weight", graph::DType::kI32, {2}, "s"); }),
      "'s': tensor 'conv.weight' is f32[2]; the model has i32[2]");
  EXPECT_EQ(
      error_of([&] { (void)find_tensor(snapshot, "fc.bias", graph::DType::kF32, {10}, "s"); }),
      "'s': tensor 'fc.bias' is missing; the model has it with shape [10]");
}

}  // namespace
}  // namespace reprise::runtime
