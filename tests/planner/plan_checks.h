#pragma once

// What must hold for every strategy on every problem, and the means to shrink one on which it does
// not.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fmt/format.h"

#include "planner/strategy.h"

namespace reprise::planner::testing {

using schedule::OpId;
using schedule::TensorId;

// Pairwise, without the packer's or the tracer's help beyond lifetimes.
inline std::optional<std::string> check_plan(const Problem& problem, const Plan& plan,
                                             Bytes budget) {
  const schedule::TraceResult traced = schedule::trace_order(problem, plan.order, plan.choices);
  if (traced.fault) return traced.fault->message;
  const auto& buffers = traced.trace.buffers.items();
  Bytes arena = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Bytes offset = plan.packing.offsets[i];
    if (buffers[i].bytes == 0) continue;
    arena = std::max(arena, offset + buffers[i].bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const Bytes other = plan.packing.offsets[j];
      if (buffers[i].start < buffers[j].end && buffers[j].start < buffers[i].end &&
          offset < other + buffers[j].bytes && other < offset + buffers[i].bytes) {
        return fmt::format("buffers {} and {} overlap", j, i);
      }
    }
  }
  if (arena != plan.arena) return fmt::format("arena {}, stated {}", arena, plan.arena);
  if (arena > budget) return fmt::format("arena {} in a budget of {}", arena, budget);
  const Bytes peak = schedule::profile_memory(traced.trace).peak;
  if (peak != plan.live_peak) return fmt::format("peak {}, stated {}", peak, plan.live_peak);
  std::int64_t cost = 0;
  std::vector<std::int64_t> runs(problem.ops.size(), 0);
  for (OpId op : plan.order) {
    cost += schedule::chosen_algorithm(problem, plan.choices, op).cost;
    ++runs[op.index()];
  }
  if (cost != plan.cost) return fmt::format("cost {}, stated {}", cost, plan.cost);
  std::int64_t again = 0;
  for (std::int64_t n : runs) again += std::max<std::int64_t>(n - 1, 0);
  if (again != plan.recomputed) return fmt::format("{} again, {} stated", again, plan.recomputed);
  if (cost < cost_lower_bound(problem)) return fmt::format("cost {} below its bound", cost);
  return std::nullopt;
}

// Budgets from below the floor to all that can be used, one strategy.
inline std::optional<std::string> check_strategy(const Problem& problem, const Strategy& strategy) {
  const auto wrong = [&](const std::string& what) {
    return fmt::format("{}: {}", strategy.name(), what);
  };
  Request request;
  request.problem = &problem;
  request.cache = make_plan_cache();
  request.packing.search_nodes = 2000;
  request.search_moves = 5;
  const Bytes floor = strategy.floor(request);
  request.budget = Bytes{1} << 60;
  const Plan widest = std::get<Plan>(strategy.plan(request));
  std::vector<Bytes> budgets;
  for (int i = 0; i <= 4; ++i) budgets.push_back(floor + (widest.arena - floor) * i / 4);
  std::int64_t last_cost = -1;
  for (Bytes budget : budgets) {
    if (budget == 0) continue;
    request.budget = budget;
    const Outcome outcome = strategy.plan(request);
    const Plan* plan = std::get_if<Plan>(&outcome);
    if (plan == nullptr) return wrong(fmt::format("infeasible at {}, floor {}", budget, floor));
    if (auto fault = check_plan(problem, *plan, budget)) return wrong(*fault);
    if (last_cost >= 0 && plan->cost > last_cost) {
      return wrong(fmt::format("cost {} at {}, less at a smaller budget", plan->cost, budget));
    }
    last_cost = plan->cost;
  }
  if (floor > 1) {
    request.budget = floor - 1;
    const Outcome outcome = strategy.plan(request);
    const Infeasible* answer = std::get_if<Infeasible>(&outcome);
    if (answer == nullptr) return wrong("plans below its floor");
    if (answer->floor != floor) return wrong(fmt::format("floors {}, {}", floor, answer->floor));
    if (answer->bound_by.empty()) return wrong("does not say what binds");
  }
  return std::nullopt;
}

inline std::optional<std::string> check_all_strategies(const Problem& problem) {
  try {
    for (const Strategy* strategy : all_strategies()) {
      if (auto fault = check_strategy(problem, *strategy)) return fault;
    }
  } catch (const std::exception& error) {
    return error.what();
  }
  return std::nullopt;
}

// Is the program order an execution at all?
inline bool is_sound(const Problem& problem) {
  schedule::Order order;
  for (std::size_t i = 0; i < problem.ops.size(); ++i) order.emplace_back(i);
  try {
    schedule::validate(problem);
  } catch (const std::exception&) {
    return false;
  }
  return !schedule::trace_order(problem, order).fault;
}

// Leaves ops out while the problem is sound and the check still fails.
inline Problem shrink(Problem problem) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t i = problem.ops.size(); i-- > 0;) {
      Problem less = problem;
      less.ops = {};
      for (std::size_t k = 0; k < problem.ops.size(); ++k) {
        if (k != i) less.ops.push_back(problem.ops[OpId(k)]);
      }
      for (const TensorId t : problem.ops[OpId(i)].outputs) {
        less.tensors[t].kind = schedule::TensorKind::kInput;
      }
      if (is_sound(less) && check_all_strategies(less)) {
        problem = less;
        smaller = true;
      }
    }
  }
  return problem;
}

inline std::string print(const Problem& problem) {
  std::string text;
  for (const schedule::Tensor& t : problem.tensors) {
    text += fmt::format("tensor {} bytes {} kind {}\n", t.name, t.bytes, static_cast<int>(t.kind));
  }
  for (const schedule::Op& op : problem.ops) {
    text += fmt::format("op {} cost {} workspace {}{}{}:", op.name, op.cost, op.workspace,
                        op.recomputable ? "" : " once", op.backward ? " backward" : "");
    for (TensorId t : op.inputs) text += " " + problem.tensors[t].name;
    text += " =>";
    for (TensorId t : op.outputs) text += " " + problem.tensors[t].name;
    for (const graph::InplacePair& pair : op.inplace) {
      text += fmt::format(" [{}>{}{}]", pair.input, pair.output, pair.forced ? " must" : "");
    }
    text += "\n";
  }
  return text;
}

}  // namespace reprise::planner::testing
