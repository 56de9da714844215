#pragma once

// What can be said about a snapshot to go on from before anything long begins.

#include <cstdint>
#include <filesystem>

#include "api/checkpoint.h"
#include "api/trainer.h"
#include "models/model.h"

namespace reprise::api {

// load_checkpoint(); when the newest snapshot of a folder is damaged, the error also names the next
// older one that can be read.
[[nodiscard]] Checkpoint load_or_advise(const std::filesystem::path& path);

// Model, seed, position and persistent values (and with them the kind of optimizer), without a
// plan. Error(kInput) names the first that does not fit. restore_checkpoint() checks all settings,
// but only once there is a session.
void require_resumable(const Checkpoint& checkpoint, const TrainOptions& options,
                       const models::ModelOptions& model_options, std::int64_t total_steps);

}  // namespace reprise::api
