#pragma once

// Losses and states that are not finite: what a run is told then, and what it keeps.

#include <cstdint>
#include <string>

#include "api/session.h"
#include "api/trainer.h"

namespace reprise::api {

// "training diverged: WHAT (learning rate ...)", what helps, and which snapshots are kept. `step`:
// the one, from 1, whose rate is named. `options` with a learning rate that is complete.
[[nodiscard]] Diverged divergence(const TrainOptions& options, const std::string& what,
                                  std::int64_t step);

// Throws Diverged for a loss that is not finite, that of the session's last step.
void require_finite_loss(const TrainOptions& options, const Session& session, float loss,
                         std::int64_t total_steps);

// Throws Diverged naming a persistent value that holds numbers which are not finite: a step whose
// loss was fine may have made the values that the next one fails on.
void require_finite_state(const TrainOptions& options, const Session& session,
                          std::int64_t total_steps);

}  // namespace reprise::api
