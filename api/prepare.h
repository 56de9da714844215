#pragma once

// From options to a planned training step's graph, the same one that train() would run.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/costs.h"
#include "api/trainer.h"
#include "graph/autodiff.h"
#include "graph/prepared.h"
#include "models/model.h"

namespace reprise::api {

struct PreparedTraining {
  graph::PreparedGraph graph;  // with the chosen costs
  CostOrigin costs;
  std::vector<std::string> warnings;
  std::int64_t chunk = 0;  // time steps that one node computes; 0 for models without
  std::int64_t micro_batches = 1;
};

// Reads from the data set no more than its sizes, builds the training graph and lets the device
// choose layouts. Costs are those that the session's options choose.
// With `ranks` it is the step of one rank among several, whose batch is the options'.
[[nodiscard]] PreparedTraining prepare_training(
    const TrainOptions& options,
    const std::optional<graph::TrainingOptions::Ranks>& ranks = std::nullopt);
// The same with options that complete_from_data() has completed.
[[nodiscard]] PreparedTraining prepare_training(
    const TrainOptions& options, const models::ModelOptions& completed,
    const std::optional<graph::TrainingOptions::Ranks>& ranks = std::nullopt);

// A rate that decays over the whole run has no period before the run's length is known. It changes
// neither bytes nor costs, so any will do for a plan.
[[nodiscard]] graph::Optimizer with_period(graph::Optimizer optimizer);

}  // namespace reprise::api
