#include <algorithm>

#include "api/solve.h"
#include "base/error.h"
#include "planner/cost_bound.h"

namespace reprise::api {
namespace {

using planner::Problem;
using schedule::CopyId;

// Room for sums with it.
constexpr Bytes kUnlimited = Bytes{1} << 62;

planner::Request make_request(const planner::OpGraphFile& file, const SolveOptions& options) {
  planner::Request request{
      .problem = &file.problem,
      .budget = kUnlimited,
      .measure = options.arena ? planner::Measure::kArena : planner::Measure::kLivePeak,
      .seed = options.seed,
      .order = options.order,
      .stop = options.stop,
      .threads = options.threads,
      .cache = planner::make_plan_cache()};
  request.packing.alignment = file.alignment;
  if (options.search_moves > 0) request.search_moves = options.search_moves;
  return request;
}

// As the file says it: what runs once only so that outputs stay may run again.
Problem without_held_ops(const planner::OpGraphFile& file) {
  Problem problem = file.problem;
  for (const schedule::OpId op : file.held_to_one_run) problem.ops[op].recomputable = true;
  return problem;
}

Certificate certify(const planner::OpGraphFile& file, const SolveOptions& options,
                    const GraphSolution& solution) {
  const std::int64_t cost = solution.plan.cost;
  const Problem problem = without_held_ops(file);
  Certificate certificate;
  certificate.lower_bound = planner::cost_lower_bound(problem, options.order);
  if (file.held_to_one_run.empty()) {
    certificate.lower_bound = std::max(certificate.lower_bound, solution.plan.cost_lower_bound);
  }
  if (cost > certificate.lower_bound) {
    certificate.lower_bound = std::max(
        certificate.lower_bound, planner::cost_bound(problem, options.order, solution.budget));
  }
  certificate.optimal = cost <= certificate.lower_bound;
  if (certificate.lower_bound > 0) {
    certificate.gap =
        static_cast<double>(cost) / static_cast<double>(certificate.lower_bound) - 1.0;
  }
  return certificate;
}

}  // namespace

std::variant<GraphSolution, planner::Infeasible> solve_graph(const planner::OpGraphFile& file,
                                                             const SolveOptions& options) {
  const planner::Strategy& strategy = planner::find_strategy(options.planner);
  planner::Request request = make_request(file, options);
  const auto keep_all = std::get<planner::Plan>(planner::find_strategy("keep_all").plan(request));
  GraphSolution solution;
  solution.keep_all_peak = keep_all.arena;
  solution.keep_all_cost = keep_all.cost;
  // Nothing to hold takes nothing; a request wants a positive budget.
  solution.budget = resolve_budget(options.budget, keep_all.arena, kUnlimited,
                                   [&] { return strategy.floor(request); });
  request.budget = std::max<Bytes>(solution.budget, 1);
  auto outcome = strategy.plan(request);
  if (auto* infeasible = std::get_if<planner::Infeasible>(&outcome)) return std::move(*infeasible);
  solution.plan = std::get<planner::Plan>(std::move(outcome));
  solution.peak = solution.plan.arena;
  solution.floor = strategy.floor(request);
  solution.certificate = certify(file, options, solution);
  return solution;
}

std::vector<GraphInstruction> graph_instructions(const Problem& problem,
                                                 const planner::Order& order) {
  using Kind = GraphInstruction::Kind;
  const schedule::TraceResult traced = schedule::trace_order(problem, order);
  REPRISE_CHECK(!traced.fault, "a plan that is no execution: {}", traced.fault->message);
  const schedule::Trace& trace = traced.trace;
  const auto ends_at = [&](CopyId id, std::size_t step) {
    const schedule::Copy& copy = trace.copies[id];
    return problem.tensors[copy.tensor].kind == schedule::TensorKind::kTemp &&
           std::max(copy.last_read, copy.made) == static_cast<std::int64_t>(step);
  };
  std::vector<GraphInstruction> instructions;
  std::vector<std::size_t> dropped_at(problem.tensors.size(), order.size());
  for (std::size_t step = 0; step < order.size(); ++step) {
    const schedule::Op& op = problem.ops[order[step]];
    instructions.push_back({Kind::kRun, order[step].index()});
    for (const graph::InplacePair& pair : op.inplace) {
      // Its buffer is the output's now.
      if (pair.forced) dropped_at[op.inputs[static_cast<std::size_t>(pair.input)].index()] = step;
    }
    const auto drop_ended = [&](std::span<const CopyId> copies) {
      for (const CopyId id : copies) {
        const std::size_t tensor = trace.copies[id].tensor.index();
        if (!ends_at(id, step) || dropped_at[tensor] == step) continue;
        dropped_at[tensor] = step;
        instructions.push_back({Kind::kDrop, tensor});
      }
    };
    drop_ended(trace.reads(step));
    drop_ended(trace.writes(step));
  }
  return instructions;
}

}  // namespace reprise::api
