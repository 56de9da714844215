#pragma once

// From flags to a planned training step, the same one that `train` would run.

#include <string>
#include <variant>
#include <vector>

#include "api/costs.h"
#include "api/plan.h"
#include "api/trainer.h"
#include "graph/autodiff.h"
#include "graph/prepared.h"

namespace reprise::cli {

struct PreparedTraining {
  graph::PreparedGraph graph;  // with the chosen costs
  api::CostOrigin costs;
  std::vector<std::string> warnings;
};

// Reads from the data set no more than its sizes, builds the training graph and lets the device
// choose layouts. Costs are those that the session's options choose.
[[nodiscard]] PreparedTraining prepare_training(const api::TrainOptions& options);

// A rate that decays over the whole run has no period before the run's length is known. It changes
// neither bytes nor costs, so any will do for a plan.
[[nodiscard]] graph::Optimizer with_period(graph::Optimizer optimizer);

}  // namespace reprise::cli
