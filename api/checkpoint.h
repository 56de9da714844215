#pragma once

// From a session to a snapshot and back.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "api/carried_state.h"
#include "api/session.h"
#include "api/trainer.h"
#include "runtime/snapshot.h"

namespace reprise::api {

struct Checkpoint {
  runtime::Snapshot snapshot;
  std::filesystem::path source;  // as the user named it
};

[[nodiscard]] Checkpoint load_checkpoint(const std::filesystem::path& path);

// What must not change between a run and its continuation, as text under the names of
// Snapshot::config. Budget, planner, device and threads may change, and the seed has its own place.
using RunSettings = std::map<std::string, std::string>;
inline constexpr const char* kDataContents = "data contents";  // DataSource::fingerprint()
[[nodiscard]] RunSettings settings_of(const TrainOptions& options,
                                      const models::ModelOptions& model_options,
                                      const std::string& data_contents);

// Named only where it is not f32.
inline constexpr const char* kPrecision = "precision";

// How many ranks saved it; another name of Snapshot::config, which may change.
inline constexpr const char* kRanks = "ranks";
[[nodiscard]] std::int64_t ranks_of(const Checkpoint& checkpoint);

// Persistent values and step counter, of a checkpoint that require_resumable() (api/resume.h) let
// pass; of several ranks, without carried states (api/carried_state.h). Error(kInput) naming the
// tensor that does not fit; nothing is written then.
void restore_checkpoint(const Checkpoint& checkpoint, Session& session, std::int64_t ranks);

// The chunk length of the snapshot's run; 0 when it does not say.
[[nodiscard]] std::int64_t chunk_of(const Checkpoint& checkpoint);

// What a snapshot says beside the session's own values.
struct RunFacts {
  RunSettings settings;
  std::int64_t steps_per_epoch = 1;
  std::int64_t ranks = 1;
  WholeStates whole_states{};  // take the place of the session's own
};
// Returns the path of the snapshot.
std::filesystem::path save_checkpoint(const TrainOptions& options, const RunFacts& facts,
                                      const Session& session);

}  // namespace reprise::api
