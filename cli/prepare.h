#pragma once

// From flags to a planned training step, the same one that `train` would run.

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "api/plan.h"
#include "api/trainer.h"
#include "kernels/backend.h"

namespace reprise::cli {

struct PreparedTraining {
  std::unique_ptr<kernels::Program> program;
  std::vector<std::string> warnings;

  [[nodiscard]] const graph::PreparedGraph& graph() const { return program->prepared(); }
};

// Reads from the data set no more than its sizes, builds the training graph and lets the device
// choose layouts.
[[nodiscard]] PreparedTraining prepare_training(const api::TrainOptions& options);

}  // namespace reprise::cli
