#include "api/chunk.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "api/data_source.h"
#include "base/error.h"
#include "models/model.h"

namespace reprise::api {
namespace {

constexpr std::int64_t kMostChunks = 2'500;  // a graph of some 30,000 nodes
constexpr std::size_t kMostCandidates = 6;
constexpr std::size_t kFewDivisors = 3;
// Search effort of trials, where the caller leaves it to the planner: a tenth of the usual.
constexpr std::int64_t kTrialMoves = 10;

// Evenly spread over the list, the first and the last among them.
std::vector<std::int64_t> thin_out(const std::vector<std::int64_t>& all) {
  if (all.size() <= kMostCandidates) return all;
  std::vector<std::int64_t> chosen;
  const double first = static_cast<double>(all.front());
  const double ratio = static_cast<double>(all.back()) / first;
  for (std::size_t k = 0; k < kMostCandidates; ++k) {
    const double ideal = first * std::pow(ratio, static_cast<double>(k) / (kMostCandidates - 1));
    const auto nearest = std::min_element(all.begin(), all.end(), [&](auto a, auto b) {
      return std::abs(std::log(static_cast<double>(a) / ideal)) <
             std::abs(std::log(static_cast<double>(b) / ideal));
    });
    if (chosen.empty() || *nearest > chosen.back()) chosen.push_back(*nearest);
  }
  return chosen;
}

Bytes keep_all_bytes(const PreparedTraining& training, PlanOptions options) {
  options.planner = "keep_all";
  options.budget = {};
  options.segments = 0;
  options.find_floor = false;
  const auto planned = plan_step(training.graph, options, training.costs);
  return std::get<PlannedTraining>(planned).report.keep_all_bytes;
}

// A run at any chunk length, all with costs of one kind.
class ChunkRun {
 public:
  explicit ChunkRun(const TrainOptions& options)
      : options_(options), completed_(options.model_options) {
    complete_from_data(options_, completed_);
    if (completed_.chunk == 0) {
      throw base::input_error("--chunk auto: model '{}' has no chunks", options_.model);
    }
    chunks_ = chunk_candidates(completed_.seq_len);
    chunks_.insert(std::lower_bound(chunks_.begin(), chunks_.end(), usual()), usual());
    chunks_.erase(std::unique(chunks_.begin(), chunks_.end()), chunks_.end());
    if (options_.session.costs.kind == CostChoice::Kind::kAuto &&
        !std::all_of(chunks_.begin(), chunks_.end(),
                     [&](std::int64_t chunk) { return prepare(chunk).costs.measured; })) {
      options_.session.costs.kind = CostChoice::Kind::kAnalytic;
    }
  }

  [[nodiscard]] std::int64_t usual() const { return completed_.chunk; }
  [[nodiscard]] const std::vector<std::int64_t>& chunks() const { return chunks_; }
  [[nodiscard]] PreparedTraining prepare(std::int64_t chunk) const {
    models::ModelOptions model = completed_;
    model.chunk = chunk;
    return prepare_training(options_, model);
  }

 private:
  TrainOptions options_;
  models::ModelOptions completed_;
  std::vector<std::int64_t> chunks_;
};

}  // namespace

std::vector<std::int64_t> chunk_candidates(std::int64_t seq_len) {
  std::vector<std::int64_t> all;
  for (std::int64_t d = std::max<std::int64_t>(1, seq_len / kMostChunks); d <= seq_len; ++d) {
    if (seq_len % d == 0 && seq_len / d <= kMostChunks) all.push_back(d);
  }
  if (all.size() < kFewDivisors) {
    for (std::int64_t d = 1; d < seq_len; d *= 4) {
      if (seq_len / d < kMostChunks) all.push_back(d);
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  return thin_out(all);
}

std::variant<ChunkChoice, planner::Infeasible> choose_chunk(
    const std::vector<std::int64_t>& candidates, std::int64_t default_chunk,
    const PrepareChunk& prepare, PlanOptions options) {
  REPRISE_CHECK(!candidates.empty(), "no chunk length to choose from");
  options.find_floor = false;
  if (options.search_moves == 0) options.search_moves = kTrialMoves;
  ChunkChoice choice;
  if (options.budget.kind == Budget::Kind::kPercent) {
    const Bytes all = keep_all_bytes(prepare(default_chunk), options);
    options.budget = {.kind = Budget::Kind::kBytes,
                      .bytes = resolve_budget(options.budget, all, all, [] { return Bytes{0}; })};
  }
  const bool floor = options.budget.kind == Budget::Kind::kFloor;
  choice.budget = options.budget;
  std::optional<planner::Infeasible> nearest;
  const ChunkTrial* best = nullptr;
  const auto rank = [&](const ChunkTrial& t) {
    return floor ? std::tuple(t.peak_bytes, t.cost_ns, -t.chunk)
                 : std::tuple(t.cost_ns, t.peak_bytes, -t.chunk);
  };
  choice.trials.reserve(candidates.size());
  for (const std::int64_t chunk : candidates) {
    const PreparedTraining training = prepare(chunk);
    auto outcome = plan_step(training.graph, options, training.costs);
    ChunkTrial& trial = choice.trials.emplace_back();
    trial.chunk = chunk;
    if (auto* infeasible = std::get_if<planner::Infeasible>(&outcome)) {
      trial.peak_bytes = infeasible->floor;
      if (!nearest || infeasible->floor < nearest->floor) nearest = std::move(*infeasible);
      continue;
    }
    const PlanReport& report = std::get<PlannedTraining>(outcome).report;
    trial.feasible = true;
    trial.cost_ns = report.cost_ns;
    trial.peak_bytes = report.peak_bytes;
    if (best == nullptr || rank(trial) < rank(*best)) best = &trial;
  }
  if (best == nullptr) return std::move(*nearest);
  choice.chunk = best->chunk;
  return choice;
}

std::variant<ChunkChoice, planner::Infeasible> choose_chunk(const TrainOptions& options) {
  const ChunkRun run(options);
  return choose_chunk(
      run.chunks(), run.usual(), [&](std::int64_t chunk) { return run.prepare(chunk); },
      options.session.plan);
}

std::vector<PreparedTraining> prepare_each_chunk(const TrainOptions& options) {
  const ChunkRun run(options);
  std::vector<PreparedTraining> all;
  all.push_back(run.prepare(run.usual()));
  for (const std::int64_t chunk : run.chunks()) {
    if (chunk != run.usual()) all.push_back(run.prepare(chunk));
  }
  return all;
}

void adopt(const ChunkChoice& choice, TrainOptions& options) {
  options.choose_chunk = false;
  options.model_options.chunk = choice.chunk;
  options.session.plan.budget = choice.budget;
}

}  // namespace reprise::api
