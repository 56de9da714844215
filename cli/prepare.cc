#include "cli/prepare.h"

#include "api/data_source.h"
#include "graph/autodiff.h"
#include "kernels/backend.h"

namespace reprise::cli {
graph::Optimizer with_period(graph::Optimizer optimizer) {
  std::visit(
      [](auto& attributes) {
        if (attributes.rate.period_steps == 0) attributes.rate.period_steps = 1;
      },
      optimizer);
  return optimizer;
}

PreparedTraining prepare_training(const api::TrainOptions& options) {
  models::ModelOptions model_options = options.model_options;
  api::complete_from_data(options, model_options);
  const models::Model model = models::make_model(options.model, model_options);
  graph::TrainingGraph training = graph::make_training_graph(
      model.graph,
      {.optimizer = with_period(options.optimizer), .updates_last = options.updates_last});
  const auto backend =
      kernels::make_backend(options.session.device, {.threads = options.session.threads});
  PreparedTraining prepared{.graph = backend->prepare(training.graph)->prepared(),
                            .costs = {},
                            .warnings = std::move(training.warnings)};
  prepared.costs = api::choose_costs(options.session.costs, *backend, prepared.graph);
  if (!prepared.costs.note.empty()) prepared.warnings.push_back(prepared.costs.note);
  return prepared;
}

}  // namespace reprise::cli
