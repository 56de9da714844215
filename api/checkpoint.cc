#include "api/checkpoint.h"

#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/attributes.h"

namespace reprise::api {
namespace {

std::string optimizer_text(const graph::Optimizer& optimizer) {
  std::string text = std::holds_alternative<graph::SgdAttributes>(optimizer) ? "sgd" : "adam";
  std::visit(
      [&](const auto& attributes) {
        // A finite step is the same with and without skip_nonfinite; and what was there before
        // clipping reads as it did.
        graph::visit_fields(attributes, [&](const char* name, const auto& field) {
          if (std::string_view(name) == "skip_nonfinite") return;
          if (std::string_view(name) == "clip_norm" && !(attributes.clip_norm > 0)) return;
          if constexpr (std::is_same_v<std::decay_t<decltype(field)>, graph::LearningRate::Kind>) {
            text += fmt::format(" {}={}", name, graph::learning_rate_kind_name(field));
          } else {
            text += fmt::format(" {}={}", name, field);
          }
        });
      },
      optimizer);
  return text;
}

std::string model_text(const models::ModelOptions& o) {
  return fmt::format(
      "batch={} image={}x{}x{} classes={} hidden={} layers={} embedding={} vocabulary={} "
      "seq_len={} chunk={} "
      "stateful={} dropout={}",
      o.batch, o.channels, o.height, o.width, o.classes, o.hidden, o.layers, o.embedding,
      o.vocabulary, o.seq_len, o.chunk, o.stateful, o.dropout);
}

std::string data_text(const DataSpec& data) {
  constexpr const char* kNames[] = {"fashion-mnist", "idx", "cifar10", "text", "synthetic"};
  return fmt::format("{} {}", kNames[static_cast<std::size_t>(data.kind)],
                     data.path.filename().string());
}

}  // namespace

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  return {.snapshot = runtime::load_latest_snapshot(path), .source = path};
}

std::int64_t chunk_of(const Checkpoint& checkpoint) {
  constexpr std::string_view kName = " chunk=";
  const auto found = checkpoint.snapshot.config.find("model options");
  if (found == checkpoint.snapshot.config.end()) return 0;
  const std::size_t at = found->second.find(kName);
  if (at == std::string::npos) return 0;
  return std::strtoll(found->second.c_str() + at + kName.size(), nullptr, 10);
}

RunSettings settings_of(const TrainOptions& options, const models::ModelOptions& model_options,
                        const std::string& data_contents) {
  RunSettings settings{{"model", options.model},
                       {"model options", model_text(model_options)},
                       {"data", data_text(options.data)},
                       {kDataContents, data_contents},
                       {"augment", options.augment ? "yes" : "no"},
                       {"optimizer", optimizer_text(options.optimizer)}};
  // What snapshots of older programs do not have is named only where it is not as it was then.
  if (options.session.synchronise_batch_norm) settings.emplace("batch norm", "over all ranks");
  if (model_options.precision != graph::DType::kF32)
    settings.emplace(kPrecision, graph::dtype_name(model_options.precision));
  if (options.micro_batches > 1)
    settings.emplace("micro-batches", fmt::format("{}", options.micro_batches));
  return settings;
}

std::int64_t ranks_of(const Checkpoint& checkpoint) {
  const auto found = checkpoint.snapshot.config.find(kRanks);
  if (found == checkpoint.snapshot.config.end()) return 1;
  return std::strtoll(found->second.c_str(), nullptr, 10);
}

void restore_checkpoint(const Checkpoint& checkpoint, Session& session, std::int64_t ranks) {
  const runtime::Snapshot& snapshot = checkpoint.snapshot;
  const std::string source = checkpoint.source.string();
  // All tensors are checked before the first is written, so that a refused snapshot changes
  // nothing.
  std::vector<const runtime::TensorEntry*> tensors;
  for (const Session::Variable& variable : session.variables()) {
    if (variable.carried && ranks > 1) continue;
    tensors.push_back(
        &runtime::find_tensor(snapshot, variable.name, variable.dtype, variable.shape, source));
  }
  for (const runtime::TensorEntry* tensor : tensors) session.write(tensor->name, tensor->data);
  session.set_steps_done(snapshot.position.steps);
}

std::filesystem::path save_checkpoint(const TrainOptions& options, const RunFacts& facts,
                                      const Session& session) {
  runtime::Snapshot snapshot;
  for (const Session::Variable& variable : session.variables()) {
    const auto whole = facts.whole_states.find(variable.name);
    const bool is_whole = whole != facts.whole_states.end();
    runtime::TensorEntry tensor{
        .name = variable.name,
        .dtype = variable.dtype,
        .shape = is_whole ? whole->second.shape : variable.shape,
        .data = is_whole ? whole->second.plain : session.read(variable.name)};
    snapshot.tensors.push_back({.tensor = std::move(tensor), .role = variable.role});
  }
  const auto per_epoch = static_cast<std::uint64_t>(facts.steps_per_epoch);
  snapshot.position = {.steps = session.steps_done(),
                       .epoch = session.steps_done() / per_epoch,
                       .batch_in_epoch = session.steps_done() % per_epoch,
                       .seed = options.session.seed};
  snapshot.config = facts.settings;
  if (facts.ranks > 1) snapshot.config[kRanks] = fmt::format("{}", facts.ranks);
  return runtime::save_snapshot(options.save_folder, snapshot);
}

}  // namespace reprise::api
