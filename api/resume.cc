#include "api/resume.h"

#include <string>

#include "api/save_folder.h"
#include "base/error.h"
#include "graph/autodiff.h"
#include "runtime/snapshot.h"

namespace reprise::api {
namespace {

std::string setting(const runtime::Snapshot& snapshot, const std::string& key) {
  const auto found = snapshot.config.find(key);
  return found == snapshot.config.end() ? "(nothing)" : found->second;
}

// The persistent values of the step that this run would plan.
void require_tensors(const runtime::Snapshot& snapshot, const graph::Graph& graph,
                     const std::string& source) {
  for (const graph::Value& value : graph.values) {
    if (!graph::is_persistent(value.role) || value.producer.valid()) continue;
    try {
      (void)runtime::find_tensor(snapshot, value.name, value.dtype, value.shape, source);
    } catch (const base::Error& error) {
      throw base::Error(
          error.kind(),
          fmt::format("{}; the snapshot's model options are '{}', its optimizer '{}'", error.what(),
                      setting(snapshot, "model options"), setting(snapshot, "optimizer")));
    }
  }
}

}  // namespace

Checkpoint load_or_advise(const std::filesystem::path& path) {
  try {
    return load_checkpoint(path);
  } catch (const base::Error& damaged) {
    const auto snapshots = runtime::snapshots_newest_first(path);
    for (std::size_t i = 1; i < snapshots.size(); ++i) {
      try {
        (void)load_checkpoint(snapshots[i]);
      } catch (const base::Error&) {
        continue;
      }
      throw base::Error(damaged.kind(),
                        fmt::format("{}; the next older snapshot can be read: --resume {}",
                                    damaged.what(), snapshots[i].string()));
    }
    throw;
  }
}

void require_resumable(const Checkpoint& checkpoint, const TrainOptions& options,
                       const models::ModelOptions& model_options, std::int64_t total_steps) {
  const runtime::Snapshot& snapshot = checkpoint.snapshot;
  const std::string source = checkpoint.source.string();
  if (setting(snapshot, "model") != options.model) {
    throw base::input_error("{}: the snapshot's model is '{}', this run's is '{}'", source,
                            setting(snapshot, "model"), options.model);
  }
  if (snapshot.position.seed != options.session.seed) {
    throw base::input_error("{}: the snapshot's seed is {}, this run's is {}", source,
                            snapshot.position.seed, options.session.seed);
  }
  const models::Model model = models::make_model(options.model, model_options);
  require_tensors(snapshot,
                  graph::make_training_graph(model.graph, {.optimizer = options.optimizer}).graph,
                  source);
  const auto steps = static_cast<std::int64_t>(snapshot.position.steps);
  if (steps < total_steps) return;
  throw base::input_error(
      "the snapshot is at step {}, but the run ends at step {}; raise --steps or --epochs", steps,
      total_steps);
}

}  // namespace reprise::api
