#pragma once

// Snapshots of a training run: all that a bitwise resume needs (docs/snapshot_format.md).

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/types.h"
#include "runtime/safetensors.h"

namespace reprise::runtime {

// Where a run stands. Everything random is a function of these (graph/random.h), so no generator
// state is saved.
struct TrainingPosition {
  std::uint64_t steps = 0;           // optimizer steps taken
  std::uint64_t epoch = 0;           // of the next step
  std::uint64_t batch_in_epoch = 0;  // of the next step
  std::uint64_t seed = 0;
  friend bool operator==(const TrainingPosition&, const TrainingPosition&) = default;
};

// A persistent value in plain form, and what it is: parameter, optimizer state or state.
struct SnapshotTensor {
  TensorEntry tensor;
  graph::Role role = graph::Role::kParameter;
};

struct Snapshot {
  std::vector<SnapshotTensor> tensors;
  TrainingPosition position;
  // What the run was: model, options as text, graph fingerprint, ... Free for the caller.
  std::map<std::string, std::string> config;
};

// Writes `folder`/snapshot-<steps>.safetensors and `folder`/weights.safetensors (the parameters and
// states alone, for use elsewhere), each atomically. Then removes all but the newest snapshot of
// fewer steps, so that two stay, and what earlier, killed processes left behind. A folder is for
// one run: snapshots of more steps are another run's and stay. Creates the folder. Returns the
// snapshot's path. Error(kDevice) naming path and reason; older snapshots then stay as they were.
std::filesystem::path save_snapshot(const std::filesystem::path& folder, const Snapshot& snapshot);

// The snapshot of the most steps in `folder`; nothing when there is none, or no folder.
[[nodiscard]] std::optional<std::filesystem::path> newest_snapshot(
    const std::filesystem::path& folder);

// All snapshots in `folder`, most steps first.
[[nodiscard]] std::vector<std::filesystem::path> snapshots_newest_first(
    const std::filesystem::path& folder);

// `path` is a snapshot, or a folder: then the one with the most steps. Throws Error(kInput) naming
// file, and tensor or field, for anything missing, damaged or of another format version.
[[nodiscard]] Snapshot load_latest_snapshot(const std::filesystem::path& path);

// The tensor of that name. Error(kInput) naming `source` and tensor when there is none, or when
// dtype or shape differ (both are named).
[[nodiscard]] const TensorEntry& find_tensor(const Snapshot& snapshot, std::string_view name,
                                             graph::DType dtype, const graph::Shape& shape,
                                             std::string_view source);

}  // namespace reprise::runtime
