#include <algorithm>
#include <array>

#include "api/solve.h"
#include "base/error.h"
#include "planner/chain/simulate.h"

namespace reprise::api {
namespace {

using planner::ChainProblem;
using planner::ChainStep;

// Room for sums with it.
constexpr Bytes kUnlimited = Bytes{1} << 62;

void check_planner(const std::string& name) {
  static constexpr std::array kNames = {"auto", "chain", "rnn", "revolve"};
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return;
  throw base::input_error("no planner '{}' for chains; there are auto, chain, rnn, revolve", name);
}

// Everything is recorded once.
planner::ChainReplay keep_all(const ChainProblem& problem) {
  planner::ChainMachine machine(problem);
  const auto length = static_cast<std::int32_t>(problem.stages.size());
  for (std::int32_t i = 0; i < length; ++i) machine.run({ChainStep::kForwardAll, i, 0});
  machine.run({ChainStep::kLoss, 0, 0});
  for (std::int32_t i = length; i-- > 0;) machine.run({ChainStep::kBackward, i, 0});
  return machine.finish();
}

// `solve(budget)` answers a ChainOutcome.
template <class Solve>
std::variant<ChainSolution, planner::ChainInfeasible> plan_within(const SolveOptions& options,
                                                                  const ChainProblem& problem,
                                                                  Solve&& solve) {
  check_planner(options.planner);
  ChainSolution solution;
  const planner::ChainReplay all = keep_all(problem);
  solution.keep_all_peak = all.peak;
  solution.keep_all_cost = all.cost;
  solution.budget = resolve_budget(options.budget, all.peak, kUnlimited, [&] {
    const planner::ChainOutcome least = solve(Bytes{0});
    const auto* below = std::get_if<planner::ChainInfeasible>(&least);
    return below != nullptr ? below->floor : Bytes{0};
  });
  planner::ChainOutcome outcome = solve(solution.budget);
  if (const auto* below = std::get_if<planner::ChainInfeasible>(&outcome)) return *below;
  if (std::holds_alternative<planner::ChainStopped>(outcome)) {
    throw base::input_error("the search was ended before it knew a plan; give it more --seconds");
  }
  solution.plan = std::get<planner::ChainPlan>(std::move(outcome));
  const planner::ChainPlan& plan = solution.plan;
  solution.certificate.lower_bound = plan.lower_bound;
  solution.certificate.optimal = plan.optimal == planner::ChainProof::kAll;
  if (plan.lower_bound > 0) {
    solution.certificate.gap =
        static_cast<double>(plan.cost) / static_cast<double>(plan.lower_bound) - 1.0;
  }
  return solution;
}

}  // namespace

std::variant<ChainSolution, planner::ChainInfeasible> solve_chain(const planner::ChainFile& file,
                                                                  const SolveOptions& options) {
  planner::ChainOptions search;
  search.stop = options.stop;
  search.threads = options.threads;
  const planner::ChainSolver solver(file.chain, search);
  return plan_within(options, file.chain, [&](Bytes budget) { return solver.plan(budget); });
}

std::variant<ChainSolution, planner::ChainInfeasible> solve_chain(
    const planner::UniformChainFile& file, const SolveOptions& options) {
  planner::ChainOptions search;
  search.stop = options.stop;
  return plan_within(options, planner::expand(file.chain), [&](Bytes budget) {
    return planner::solve_chain(file.chain, budget, search);
  });
}

}  // namespace reprise::api
