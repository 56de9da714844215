#include "planner/chain/floor.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace reprise::planner {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

ChainFloor::ChainFloor(const ChainProblem& problem)
    : problem_(problem), length_(static_cast<Stage32>(problem.stages.size())) {
  a_.push_back(problem.input);
  g_.push_back(problem.input_gradient);
  for (const Stage& stage : problem.stages) {
    a_.push_back(stage.output);
    g_.push_back(stage.output_gradient);
  }
  for (Stage32 l = 0; l <= length_; ++l) beside_.emplace_back(at(l) + 1);
  beside_[at(length_)][at(length_)] = a_.back() + g_.back() + problem.loss_workspace;
  std::vector<Bytes> row(at(length_) + 1);  // least(i, l) of this i
  for (Stage32 i = length_ - 1; i >= 0; --i) {
    const std::vector<Bytes> transient = transients(i);
    for (Stage32 l = i; l <= length_; ++l) {
      const std::int32_t option = best_option(i, l);
      Bytes best = l == i ? of_leaf(i, option) : of_record(i, l, option);
      const std::vector<Bytes>& beside = beside_[at(l)];
      const Bytes gradient = gradient_after(l);
      for (std::size_t j = at(i) + 1; j <= at(l); ++j) {
        best = std::min(best, std::max({beside[j], row[j - 1], gradient + transient[j]}));
      }
      row[at(l)] = best;
      beside_[at(l)][at(i)] = a_[at(i)] + best;
    }
  }
}

Bytes ChainFloor::budget() const {
  return beside_[at(length_)][0];
}

Bytes ChainFloor::least(Stage32 i, Stage32 l) const {
  return beside_[at(l)][at(i)] - a_[at(i)];
}

Bytes ChainFloor::gradient_after(Stage32 l) const {
  return l == length_ ? 0 : g_[at(l) + 1];
}

Bytes ChainFloor::of_leaf(Stage32 i, std::int32_t option) const {
  const StageOption& o = problem_.stages[at(i)].options[at(option)];
  return g_[at(i) + 1] + o.record + std::max(o.forward_workspace, g_[at(i)] + o.backward_workspace);
}

Bytes ChainFloor::of_record(Stage32 i, Stage32 l, std::int32_t option) const {
  const StageOption& o = problem_.stages[at(i)].options[at(option)];
  return o.record + std::max({gradient_after(l) + o.forward_workspace,
                              g_[at(i) + 1] + g_[at(i)] + o.backward_workspace, least(i + 1, l)});
}

std::int32_t ChainFloor::best_option(Stage32 i, Stage32 l) const {
  std::int32_t best = 0;
  const auto bytes = [&](std::int32_t k) { return l == i ? of_leaf(i, k) : of_record(i, l, k); };
  const auto count = static_cast<std::int32_t>(problem_.stages[at(i)].options.size());
  for (std::int32_t k = 1; k < count; ++k) {
    if (bytes(k) < bytes(best)) best = k;
  }
  return best;
}

// [j]: the largest need of going forward from x_i to x_j.
std::vector<Bytes> ChainFloor::transients(Stage32 i) const {
  std::vector<Bytes> result(at(length_) + 1, 0);
  for (std::size_t j = at(i) + 1; j <= at(length_); ++j) {
    const Bytes from = j - 1 > at(i) ? a_[j - 1] : 0;
    result[j] = std::max(result[j - 1], a_[j] + problem_.stages[j - 1].forward_workspace + from);
  }
  return result;
}

std::vector<ChainInstruction> ChainFloor::plan() const {
  struct Task {
    Stage32 i = 0, l = -1;  // a stretch; or an instruction where l < i
    ChainInstruction instruction;
  };
  std::vector<ChainInstruction> result;
  std::vector<Task> todo = {{0, length_, {}}};
  while (!todo.empty()) {
    const auto [i, l, instruction] = todo.back();
    todo.pop_back();
    if (l < i) {
      result.push_back(instruction);
      continue;
    }
    if (i == length_) {
      result.push_back({ChainStep::kLoss, 0, 0});
      continue;
    }
    const std::int32_t option = best_option(i, l);
    const Bytes recorded = l == i ? of_leaf(i, option) : of_record(i, l, option);
    if (recorded == least(i, l)) {
      result.push_back({ChainStep::kForwardAll, i, option});
      todo.push_back({0, -1, {ChainStep::kBackward, i, option}});
      if (l > i) todo.push_back({i + 1, l, {}});
      continue;
    }
    const std::vector<Bytes> transient = transients(i);
    Stage32 j = i + 1;
    while (std::max({beside_[at(l)][at(j)], least(i, j - 1),
                     gradient_after(l) + transient[at(j)]}) > least(i, l)) {
      ++j;
    }
    for (Stage32 k = i; k < j; ++k) {
      result.push_back({k == i ? ChainStep::kForwardKeep : ChainStep::kForwardDrop, k, 0});
    }
    todo.push_back({i, j - 1, {}});
    todo.push_back({j, l, {}});
  }
  return result;
}

}  // namespace reprise::planner
