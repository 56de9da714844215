#include "planner/algorithms.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/simulate.h"

namespace reprise::planner {

using schedule::Op;
using schedule::OpId;
using schedule::Problem;

bool offers_algorithms(const Problem& problem) {
  return std::any_of(problem.ops.begin(), problem.ops.end(),
                     [](const Op& op) { return op.choices() > 1; });
}

Problem leanest_problem(const Problem& problem) {
  Problem lean = problem;
  for (Op& op : lean.ops) {
    const schedule::Algorithm last = op.algorithm(op.leaner.size());
    op.workspace = last.workspace;
    op.cost = last.cost;
    op.leaner.clear();
  }
  return lean;
}

OrderAlgorithms::OrderAlgorithms(const Problem& problem, const schedule::Order& order)
    : problem_(problem), beside_(problem.ops.size(), 0), runs_(problem.ops.size(), 0) {
  Choices leanest;
  for (const Op& op : problem.ops) leanest.push_back(static_cast<std::int32_t>(op.leaner.size()));
  const schedule::TraceResult traced = schedule::trace_order(problem, order, leanest);
  REPRISE_CHECK(!traced.fault, "choosing algorithms for an order that is no execution: {}",
                traced.fault ? traced.fault->message : "");
  const schedule::MemoryProfile profile = schedule::profile_memory(traced.trace);
  least_ = profile.peak;
  leanest_cost_ = traced.trace.cost;
  for (std::size_t step = 0; step < order.size(); ++step) {
    const OpId op = order[step];
    const Bytes beside = profile.live_bytes[step] - problem.ops[op].least_workspace();
    beside_[op.index()] = std::max(beside_[op.index()], beside);
    ++runs_[op.index()];
  }
}

std::int32_t OrderAlgorithms::choice_within(OpId id, Bytes bytes) const {
  const Op& op = problem_.ops[id];
  const Bytes left = std::max(bytes, least_) - beside_[id.index()];
  std::size_t choice = 0;
  while (choice < op.leaner.size() && op.algorithm(choice).workspace > left) ++choice;
  return static_cast<std::int32_t>(choice);
}

Choices OrderAlgorithms::within(Bytes bytes) const {
  Choices choices(problem_.ops.size(), 0);
  for (std::size_t i = 0; i < choices.size(); ++i) choices[i] = choice_within(OpId(i), bytes);
  return choices;
}

std::vector<OrderAlgorithms::Level> OrderAlgorithms::levels(std::size_t most) const {
  // From which level on an algorithm fits, and what it then saves over the next leaner one.
  std::vector<std::pair<Bytes, std::int64_t>> savings;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const Op& op = problem_.ops[OpId(i)];
    for (std::size_t k = 0; k < op.leaner.size() && runs_[i] > 0; ++k) {
      const schedule::Algorithm here = op.algorithm(k);
      savings.emplace_back(std::max(least_, beside_[i] + here.workspace),
                           runs_[i] * (op.algorithm(k + 1).cost - here.cost));
    }
  }
  std::sort(savings.begin(), savings.end());
  std::vector<Level> all{{least_, leanest_cost_}};
  for (const auto& [bytes, saved] : savings) {
    if (bytes > all.back().live_peak) all.push_back({bytes, all.back().cost});
    all.back().cost -= saved;
  }
  if (all.size() <= most) return all;
  std::vector<Level> kept{all.front()};
  const std::int64_t stride = std::max<std::int64_t>(
      (all.front().cost - all.back().cost) / static_cast<std::int64_t>(most), 1);
  for (const Level& level : all) {
    if (kept.back().cost - level.cost >= stride) kept.push_back(level);
  }
  if (kept.back().cost != all.back().cost) kept.push_back(all.back());
  return kept;
}

}  // namespace reprise::planner
