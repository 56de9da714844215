#include "planner/chain/table.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "planner/chain/team.h"

namespace reprise::planner {
namespace {

std::size_t at_index(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

const CellStaircase kNothing;

// Cells of memory: a few steps in each.
constexpr std::int64_t kCells = 1024;
// Not worth a second thread.
constexpr std::int32_t kShort = 32;

}  // namespace

ChainTable::ChainTable(const ChainProblem& problem, ChainTableOptions options)
    : problem_(problem),
      options_(std::move(options)),
      length_(static_cast<Stage32>(problem.stages.size())) {
  a_.push_back(problem.input);
  g_.push_back(problem.input_gradient);
  forward_sum_.push_back(0);
  Bytes transient = problem.loss_workspace;
  for (const Stage& stage : problem.stages) {
    a_.push_back(stage.output);
    g_.push_back(stage.output_gradient);
    forward_sum_.push_back(forward_sum_.back() + stage.forward_cost);
    Bytes record = stage.output;
    transient = std::max(transient, stage.forward_workspace);
    for (const StageOption& o : stage.options) {
      record = std::max(record, o.record);
      transient = std::max({transient, o.forward_workspace, o.backward_workspace});
    }
    cap_ += record;
  }
  cap_ += transient + 3 * *std::max_element(g_.begin(), g_.end()) +
          *std::max_element(a_.begin(), a_.end());
  cells_ = MemoryCells(cap_, kCells);
  solve();
}

bool ChainTable::exists(Stage32 i, Stage32 l) const {
  if (l == length_ || l - i < options_.window) return true;
  return i % options_.grid == 0 && (l + 1) % options_.grid == 0;
}

const CellStaircase& ChainTable::at(bool recorded, Stage32 i, Stage32 l) const {
  const auto& row = (recorded ? recorded_ : original_)[at_index(i)];
  const std::size_t k = at_index(l - i);
  return k < row.size() ? row[k] : kNothing;
}

void ChainTable::solve() {
  original_.resize(at_index(length_) + 1);
  recorded_.resize(at_index(length_) + 1);
  for (Stage32 i = 0; i <= length_; ++i) {
    original_[at_index(i)].resize(at_index(length_ - i) + 1);
    if (options_.drop_inputs && i < length_) recorded_[at_index(i)].resize(at_index(length_ - i));
  }
  const int threads = length_ < kShort ? 1 : options_.threads;
  Team team(threads);
  std::vector<Envelope> scratch(team.size(), Envelope(cap_, cells_));
  for (Stage32 i = 0; i <= length_; ++i) solve_leaf(i, scratch[0]);
  // Stretches of one length need only shorter ones.
  std::vector<Stage32> starts;
  for (Stage32 length = 1; length <= length_; ++length) {
    if (options_.stop && options_.stop()) return;
    starts.clear();
    for (Stage32 i = 0; i + length <= length_; ++i) {
      if (exists(i, i + length)) starts.push_back(i);
    }
    if (starts.size() < at_index(length_ - length) + 1) exact_ = false;
    team.run(starts.size(), [&](std::size_t worker, std::size_t k) {
      const Stage32 i = starts[k], l = i + length;
      solve_part(false, i, l, scratch[worker]);
      if (options_.drop_inputs && l < length_) solve_part(true, i, l, scratch[worker]);
    });
  }
  answers_ = at(false, 0, length_).steps;
  for (StairStep& step : answers_) step.memory += a_[0];
  complete_ = true;
}

void ChainTable::solve_leaf(Stage32 i, Envelope& best) {
  best.clear();
  if (i == length_) {
    best.add(g_[at_index(i)] + problem_.loss_workspace, problem_.loss_cost, {});
    original_[at_index(i)][0] = CellStaircase(best.stairs(), cells_);
    return;
  }
  const Stage& stage = problem_.stages[at_index(i)];
  Bytes workspace = 0;
  for (std::size_t k = 0; k < stage.options.size(); ++k) {
    const StageOption& o = stage.options[k];
    const Bytes memory = g_[at_index(i) + 1] + o.record +
                         std::max(o.forward_workspace, g_[at_index(i)] + o.backward_workspace);
    workspace = std::max(workspace, o.backward_workspace);
    best.add(memory, o.forward_cost + o.backward_cost,
             {ChainMove::kLeaf, static_cast<std::int16_t>(k), i});
  }
  original_[at_index(i)][0] = CellStaircase(best.stairs(), cells_);
  if (!options_.drop_inputs) return;
  // Fall and B of the recorded stage are paid for where it is recorded.
  best.clear();
  best.add(g_[at_index(i) + 1] + g_[at_index(i)] + workspace, 0, {});
  recorded_[at_index(i)][0] = CellStaircase(best.stairs(), cells_);
}

void ChainTable::solve_part(bool recorded, Stage32 i, Stage32 l, Envelope& best) {
  best.clear();
  add_records(recorded, i, l, best);
  add_record_run(recorded, i, l, best);
  add_splits(recorded, i, l, best);
  const std::size_t most = l == length_ ? options_.most_loss_steps : options_.most_steps;
  if (best.stairs().size() > most) exact_ = false;
  (recorded ? recorded_ : original_)[at_index(i)][at_index(l - i)] =
      CellStaircase(thin_out(best.stairs(), most), cells_);
}

void ChainTable::add_records(bool recorded, Stage32 i, Stage32 l, Envelope& best) const {
  if (!exists(i + 1, l)) return;
  const Stage& stage = problem_.stages[at_index(i)];
  for (std::size_t k = 0; k < stage.options.size(); ++k) {
    const StageOption& o = stage.options[k];
    const Bytes least =
        o.record + std::max(gradient_after(l) + o.forward_workspace,
                            g_[at_index(i) + 1] + g_[at_index(i)] + o.backward_workspace);
    best.add(at(recorded, i + 1, l).steps, o.record, least, o.forward_cost + o.backward_cost,
             {ChainMove::kRecord, static_cast<std::int16_t>(k), i});
  }
}

// From a grid point to the next one, where the points between them start no stretch that long.
void ChainTable::add_record_run(bool recorded, Stage32 i, Stage32 l, Envelope& best) const {
  const Stage32 end = i + options_.grid;
  if (l == length_ || exists(i + 1, l) || end > l || !exists(end, l)) return;
  Bytes held = 0, least = 0;
  std::int64_t cost = 0;
  for (Stage32 k = i; k < end; ++k) {
    const StageOption& o = problem_.stages[at_index(k)].options[0];
    held += o.record;
    cost += o.forward_cost + o.backward_cost;
    least = std::max(least,
                     held + std::max(gradient_after(l) + o.forward_workspace,
                                     g_[at_index(k) + 1] + g_[at_index(k)] + o.backward_workspace));
  }
  best.add(at(recorded, end, l).steps, held, least, cost, {ChainMove::kRecordMany, 0, end});
}

void ChainTable::add_splits(bool recorded, Stage32 i, Stage32 l, Envelope& best) const {
  Bytes transient = 0;
  for (Stage32 j = i + 1; j <= l; ++j) {
    const Stage32 k = j - 1;
    transient =
        std::max(transient, a_[at_index(j)] + problem_.stages[at_index(k)].forward_workspace +
                                (k > i ? a_[at_index(k)] : 0));
    if (!exists(i, j - 1)) continue;
    const std::int64_t forward = forward_sum_[at_index(j)] - forward_sum_[at_index(i)];
    if (exists(j, l)) {
      best.add({at(recorded, j, l), a_[at_index(j)]}, {at(false, i, j - 1), 0},
               gradient_after(l) + transient, forward, {ChainMove::kCheckpoint, 0, j});
    }
    if (options_.drop_inputs && j < l && exists(j + 1, l) && exists(i, j)) {
      add_drops(recorded, i, l, j, transient, best);
    }
  }
}

void ChainTable::add_drops(bool recorded, Stage32 i, Stage32 l, Stage32 j, Bytes transient,
                           Envelope& best) const {
  const Stage& stage = problem_.stages[at_index(j)];
  const std::int64_t forward = forward_sum_[at_index(j)] - forward_sum_[at_index(i)];
  for (std::size_t k = 0; k < stage.options.size(); ++k) {
    const StageOption& o = stage.options[k];
    const Bytes least =
        gradient_after(l) + std::max(transient, a_[at_index(j)] + o.record + o.forward_workspace);
    best.add({at(recorded, j + 1, l), o.record}, {at(true, i, j), o.record}, least,
             forward + o.forward_cost + o.backward_cost,
             {ChainMove::kDropInput, static_cast<std::int16_t>(k), j});
  }
}

}  // namespace reprise::planner
