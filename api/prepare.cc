#include "api/prepare.h"

#include "api/data_source.h"
#include "api/micro_batches.h"
#include "kernels/backend.h"

namespace reprise::api {

graph::Optimizer with_period(graph::Optimizer optimizer) {
  std::visit(
      [](auto& attributes) {
        if (attributes.rate.period_steps == 0) attributes.rate.period_steps = 1;
      },
      optimizer);
  return optimizer;
}

PreparedTraining prepare_training(const TrainOptions& options,
                                  const std::optional<graph::TrainingOptions::Ranks>& ranks) {
  models::ModelOptions completed = options.model_options;
  complete_from_data(options, completed);
  return prepare_training(options, completed, ranks);
}

PreparedTraining prepare_training(const TrainOptions& options,
                                  const models::ModelOptions& completed,
                                  const std::optional<graph::TrainingOptions::Ranks>& ranks) {
  const Shard shard{.micro_batches = options.micro_batches};
  const models::Model model =
      models::make_model(options.model, options_of_micro_batch(completed, shard));
  require_micro_batches(model, completed.batch, shard);
  graph::TrainingGraph training =
      graph::make_training_graph(model.graph, {.optimizer = with_period(options.optimizer),
                                               .ranks = ranks,
                                               .micro_batches = options.micro_batches,
                                               .updates_last = options.updates_last});
  const auto backend = make_backend(options.session);
  PreparedTraining prepared{.graph = backend->prepare(training.graph)->prepared(),
                            .costs = {},
                            .warnings = std::move(training.warnings),
                            .chunk = completed.chunk,
                            .micro_batches = options.micro_batches};
  prepared.costs = choose_costs(options.session.costs, *backend, prepared.graph);
  if (!prepared.costs.note.empty()) prepared.warnings.push_back(prepared.costs.note);
  return prepared;
}

}  // namespace reprise::api
