#include "api/plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "planner/cost_bound.h"
#include "planner/hold_sums.h"
#include "planner/lowering.h"
#include "planner/spread_sums.h"
#include "runtime/processor_info.h"
#include "schedule/verify.h"

namespace reprise::api {
namespace {

// Effort of the certificate's linear programs: some tenths of a second.
constexpr std::int64_t kBoundIterations = 5'000;

void require_verified(const graph::PreparedGraph& prepared, const schedule::Schedule& schedule) {
  const auto violations = schedule::verify(prepared, schedule);
  REPRISE_CHECK(violations.empty(), "the planner made a schedule that breaks rule '{}': {}",
                schedule::rule_name(violations.front().rule), violations.front().message);
}

Bytes persistent_bytes(const graph::PreparedGraph& prepared) {
  Bytes total = 0;
  for (std::size_t i = 0; i < prepared.graph.values.size(); ++i) {
    const graph::Value& value = prepared.graph.values[graph::ValueId(i)];
    if (!graph::is_persistent(value.role)) continue;
    total += base::align_up(prepared.value_bytes[graph::ValueId(i)], graph::kArenaAlignment);
  }
  return total;
}

// What nothing recomputed takes: the measure of every other plan.
planner::Plan plan_keep_all(planner::Request request) {
  request.budget = std::numeric_limits<Bytes>::max();
  auto outcome = planner::find_strategy("keep_all").plan(request);
  REPRISE_CHECK(std::holds_alternative<planner::Plan>(outcome),
                "keep_all does not fit into 2^63 bytes");
  return std::get<planner::Plan>(std::move(outcome));
}

double ratio(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
}

std::string precision_of(const graph::Graph& graph) {
  const bool bf16 =
      std::any_of(graph.values.begin(), graph.values.end(),
                  [](const graph::Value& value) { return value.dtype == graph::DType::kBF16; });
  return graph::dtype_name(bf16 ? graph::DType::kBF16 : graph::DType::kF32);
}

}  // namespace

std::variant<PlannedTraining, planner::Infeasible> plan_step(const graph::PreparedGraph& prepared,
                                                             const PlanOptions& options,
                                                             const CostOrigin& costs) {
  const auto begin = std::chrono::steady_clock::now();
  const planner::GraphProblem problem = planner::make_problem(prepared);
  planner::Request request{.problem = &problem.problem,
                           .seed = options.seed,
                           .segments = options.segments,
                           .threads = options.threads > 0
                                          ? options.threads
                                          : std::max(1, runtime::read_processor().cores),
                           .cache = planner::make_plan_cache()};
  if (options.search_moves > 0) request.search_moves = options.search_moves;
  const planner::Plan keep_all = plan_keep_all(request);
  const Bytes floor = options.find_floor ? planner::find_strategy("auto").floor(request) : 0;
  const planner::Strategy& strategy = planner::find_strategy(options.planner);
  request.budget = resolve_budget(options.budget, keep_all.arena, keep_all.arena,
                                  [&] { return strategy.floor(request); });

  PlannedTraining result;
  PlanReport& report = result.report;
  report.budget_bytes = request.budget;
  auto outcome = strategy.plan(request);
  if (auto* infeasible = std::get_if<planner::Infeasible>(&outcome)) return std::move(*infeasible);
  // No more than keeping everything takes, however much the budget allows.
  auto& found = std::get<planner::Plan>(outcome);
  const Bytes room = std::max(found.arena, std::min(request.budget, keep_all.arena));
  const planner::Plan plan =
      planner::hold_sums(prepared, problem, std::move(found), room, request.packing);

  result.step = schedule::PlannedStep{
      .prepared = prepared,
      .schedule = planner::spread_sums(prepared, planner::lower(prepared, problem, plan)),
      .planner = plan.strategy,
      .budget_bytes = report.budget_bytes};
  require_verified(prepared, result.step.schedule);

  report.model = prepared.graph.name;
  report.precision = precision_of(prepared.graph);
  report.costs = costs;
  report.planner = plan.strategy;
  report.nodes = static_cast<std::int64_t>(problem.problem.ops.size());
  report.peak_bytes = result.step.schedule.arena_bytes;
  report.floor_bytes = floor;
  report.keep_all_bytes = keep_all.arena;
  report.persistent_bytes = persistent_bytes(prepared);
  report.cost_ns = plan.cost;
  report.keep_all_cost_ns = keep_all.cost;
  report.lower_bound_ns = plan.cost_lower_bound;
  report.memory_bound_bytes = planner::memory_bound(problem.problem, request.order);
  if (plan.cost > report.lower_bound_ns) {
    planner::BoundOptions effort;
    effort.iterations = kBoundIterations;
    if (!options.find_floor) effort.most_ops = 0;  // one of many plans
    report.lower_bound_ns =
        std::max(report.lower_bound_ns,
                 planner::cost_bound(problem.problem, request.order, request.budget, effort));
  }
  report.overhead = ratio(plan.cost - keep_all.cost, keep_all.cost);
  report.gap = ratio(plan.cost - report.lower_bound_ns, report.lower_bound_ns);
  report.fragmentation = plan.packing.fragmentation();
  report.recomputed_nodes = plan.recomputed;
  report.plan_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace reprise::api
