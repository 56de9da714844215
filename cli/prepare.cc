#include "cli/prepare.h"

#include "api/data_source.h"
#include "graph/autodiff.h"

namespace reprise::cli {
namespace {

// A rate that decays over the whole run has no period before the run's length is known. It changes
// neither bytes nor costs, so any will do for a plan.
graph::Optimizer with_period(graph::Optimizer optimizer) {
  std::visit(
      [](auto& attributes) {
        if (attributes.rate.period_steps == 0) attributes.rate.period_steps = 1;
      },
      optimizer);
  return optimizer;
}

}  // namespace

PreparedTraining prepare_training(const api::TrainOptions& options) {
  models::ModelOptions model_options = options.model_options;
  api::complete_from_data(options, model_options);
  const models::Model model = models::make_model(options.model, model_options);
  graph::TrainingGraph training =
      graph::make_training_graph(model.graph, {.optimizer = with_period(options.optimizer)});
  const auto backend =
      kernels::make_backend(options.session.device, {.threads = options.session.threads});
  return {.program = backend->prepare(training.graph), .warnings = std::move(training.warnings)};
}

}  // namespace reprise::cli
