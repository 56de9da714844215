#include "api/resume.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "api/save_folder.h"
#include "base/error.h"
#include "graph/autodiff.h"
#include "runtime/snapshot.h"

namespace reprise::api {
namespace {

struct Change {
  std::string then, now;
};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t blank = text.find(' ');
    words.push_back(text.substr(0, blank));
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
  }
  return words;
}

// Of two lists of the same "name=value" words only those that differ; else both texts whole.
Change what_changed(const std::string& then, const std::string& now) {
  const auto old_words = words_of(then);
  const auto new_words = words_of(now);
  const auto name = [](std::string_view word) { return word.substr(0, word.find('=')); };
  if (!std::equal(old_words.begin(), old_words.end(), new_words.begin(), new_words.end(),
                  [&](auto a, auto b) { return name(a) == name(b); })) {
    return {then, now};
  }
  Change change;
  for (std::size_t i = 0; i < old_words.size(); ++i) {
    if (old_words[i] == new_words[i]) continue;
    change.then += fmt::format("{}{}", change.then.empty() ? "" : " ", old_words[i]);
    change.now += fmt::format("{}{}", change.now.empty() ? "" : " ", new_words[i]);
  }
  return change;
}

// "model options 'hidden=16', now 'hidden=24'", one after the other; "" when there are none.
class Changes {
 public:
  void add(std::string_view what, const std::string& then, const std::string& now) {
    if (then == now) return;
    const Change change = what_changed(then, now);
    text_ += fmt::format("{}{} '{}', now '{}'", text_.empty() ? "" : "; ", what, change.then,
                         change.now);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string changed_settings(const runtime::Snapshot& snapshot, const RunSettings& now,
                             std::uint64_t seed) {
  Changes changes;
  RunSettings all = now;  // every name that one of both has
  all.insert(snapshot.config.begin(), snapshot.config.end());
  const auto get = [](const RunSettings& settings, const std::string& name) {
    const auto found = settings.find(name);
    if (found != settings.end()) return found->second;
    return std::string(name == kPrecision ? "f32" : "(nothing)");
  };
  for (const auto& [name, ignored] : all) {
    if (name == kDataContents || name == kRanks) continue;
    changes.add(name, get(snapshot.config, name), get(now, name));
  }
  changes.add("seed", fmt::format("{}", snapshot.position.seed), fmt::format("{}", seed));
  if (snapshot.config.contains(kDataContents)) {
    changes.add(fmt::format("contents of data '{}'", get(now, "data")),
                get(snapshot.config, kDataContents), get(now, kDataContents));
  }
  return changes.text();
}

// The persistent values of the step that this run would plan.
void require_tensors(const runtime::Snapshot& snapshot, const graph::Graph& graph,
                     const std::string& source) {
  for (const graph::Value& value : graph.values) {
    if (!graph::is_persistent(value.role) || value.producer.valid()) continue;
    (void)runtime::find_tensor(snapshot, value.name, value.dtype, value.shape, source);
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
                       const models::ModelOptions& model_options, const RunSettings& settings,
                       std::int64_t total_steps) {
  const runtime::Snapshot& snapshot = checkpoint.snapshot;
  const std::string source = checkpoint.source.string();
  if (const std::string changed = changed_settings(snapshot, settings, options.session.seed);
      !changed.empty()) {
    throw base::input_error(
        "{}: the snapshot is of another run, and going on would not give that run's result: {}; "
        "give the flags and the data of the snapshot's run, or train anew without --resume",
        source, changed);
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

std::optional<std::string> other_ranks(const Checkpoint& checkpoint, std::int64_t ranks) {
  const std::int64_t then = ranks_of(checkpoint);
  if (then == ranks) return std::nullopt;
  return fmt::format(
      "{}: the snapshot is of {} rank{}, and this run has {}: it goes on with the same global "
      "batches, but not bit for bit, since sums are rounded in another order, and dropout masks "
      "and statistics of batch norm belong to a rank and its part of a batch",
      checkpoint.source.string(), then, then == 1 ? "" : "s", ranks);
}

std::optional<std::string> untold_data(const Checkpoint& checkpoint) {
  if (checkpoint.snapshot.config.contains(kDataContents)) return std::nullopt;
  return fmt::format(
      "{}: the snapshot does not say what its data held (an older program wrote it); that the data "
      "is unchanged is taken on trust",
      checkpoint.source.string());
}

}  // namespace reprise::api
