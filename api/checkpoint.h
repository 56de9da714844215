#pragma once

// From a session to a snapshot and back.

#include <filesystem>
#include <vector>

#include "api/session.h"
#include "api/trainer.h"
#include "runtime/snapshot.h"

namespace reprise::api {

struct Checkpoint {
  runtime::Snapshot snapshot;
  std::filesystem::path source;  // as the user named it
};

[[nodiscard]] Checkpoint load_checkpoint(const std::filesystem::path& path);

// Persistent values, step counter. Budget, planner, device and threads may differ from the run that
// saved; model, data, optimizer and seed may not: Error(kInput) names the first that does, and both
// settings.
void restore_checkpoint(const Checkpoint& checkpoint, const TrainOptions& options,
                        const models::ModelOptions& model_options, Session& session);

// Returns the path of the snapshot.
std::filesystem::path save_checkpoint(const TrainOptions& options,
                                      const models::ModelOptions& model_options,
                                      std::int64_t steps_per_epoch, const Session& session);

}  // namespace reprise::api
