#pragma once

// What can be said about a snapshot to go on from before anything long begins.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "api/checkpoint.h"
#include "api/trainer.h"
#include "models/model.h"

namespace reprise::api {

// load_checkpoint(); when the newest snapshot of a folder is damaged, the error also names the next
// older one that can be read.
[[nodiscard]] Checkpoint load_or_advise(const std::filesystem::path& path);

// Settings, data, seed, position and persistent values, without a plan. Error(kInput) lists all
// that differs, with both values, and says what to do. Settings that only one side has differ, but
// for the data's contents: see untold_data().
void require_resumable(const Checkpoint& checkpoint, const TrainOptions& options,
                       const models::ModelOptions& model_options, const RunSettings& settings,
                       std::int64_t total_steps);

// Snapshots from before contents were kept say nothing of them: then what the user should know.
[[nodiscard]] std::optional<std::string> untold_data(const Checkpoint& checkpoint);

// Another number of ranks goes on with the same global batches, but not with the same bits: then
// what the user should know.
[[nodiscard]] std::optional<std::string> other_ranks(const Checkpoint& checkpoint,
                                                     std::int64_t ranks);

}  // namespace reprise::api
