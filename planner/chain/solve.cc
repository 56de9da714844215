#include "planner/chain/solve.h"

#include <algorithm>

#include "base/error.h"
#include "planner/chain/bound.h"
#include "planner/chain/shortest.h"
#include "planner/chain/simulate.h"
#include "planner/chain/table.h"

namespace reprise::planner {
namespace {

// Longer chains are not looked at with inputs dropped: both tables then take four times as long.
constexpr std::size_t kMostStagesWithDrops = 100;
// Longer chains are cut at a grid; see table.h.
constexpr std::size_t kMostStagesExact = 250;
// Of the shortest path over all schedules.
constexpr std::int64_t kMostStates = 200'000;

}  // namespace

struct ChainSolver::State {
  ChainProblem problem;
  ChainOptions options;
  std::unique_ptr<ChainTable> persistent, dropping;  // null when not worked out
  Staircase answers;
};

ChainSolver::~ChainSolver() = default;
ChainSolver::ChainSolver(ChainSolver&&) noexcept = default;
ChainSolver& ChainSolver::operator=(ChainSolver&&) noexcept = default;

ChainSolver::ChainSolver(ChainProblem problem, ChainOptions options)
    : state_(std::make_unique<State>()) {
  validate(problem);
  State& s = *state_;
  s.problem = std::move(problem);
  s.options = std::move(options);
  const std::size_t length = s.problem.stages.size();
  ChainTableOptions table;
  table.stop = s.options.stop;
  s.persistent = std::make_unique<ChainTable>(s.problem, table);
  if (!s.persistent->complete()) return;
  s.answers = s.persistent->answers();
  if (!s.options.drop_inputs || length > kMostStagesWithDrops) return;
  table.drop_inputs = true;
  s.dropping = std::make_unique<ChainTable>(s.problem, table);
  if (s.dropping->complete()) {
    s.answers = s.dropping->answers();
  } else {
    s.dropping.reset();
  }
}

const ChainProblem& ChainSolver::problem() const {
  return state_->problem;
}

const Staircase& ChainSolver::answers() const {
  return state_->answers;
}

ChainOutcome ChainSolver::plan(Bytes budget) const {
  const State& s = *state_;
  if (!s.persistent->complete()) return ChainStopped{};
  const StairStep* persistent = step_within(s.persistent->answers(), budget);
  if (persistent == nullptr) return ChainInfeasible{s.persistent->answers().front().memory};
  ChainPlan plan;
  plan.floor = s.persistent->answers().front().memory;
  plan.lower_bound = chain_lower_bound(s.problem, budget);
  plan.persistent_bound = s.persistent->exact() ? persistent->cost : plan.lower_bound;
  plan.optimal = s.persistent->exact() ? ChainProof::kPersistent : ChainProof::kNone;
  std::int64_t cost = persistent->cost;
  std::vector<ChainInstruction> instructions;
  const StairStep* dropping = s.dropping ? step_within(s.dropping->answers(), budget) : nullptr;
  if (dropping != nullptr && dropping->cost < cost) {
    cost = dropping->cost;
    instructions = s.dropping->plan(budget);
  } else {
    instructions = s.persistent->plan(budget);
  }
  if (cost > plan.lower_bound && s.options.drop_inputs) {
    const ShortestResult shortest =
        shortest_schedule(s.problem, budget, {cost, kMostStates, s.options.stop});
    if (!shortest.cheaper.empty()) instructions = shortest.cheaper;
    if (shortest.proven) {
      cost = replay(s.problem, instructions).cost;
      plan.lower_bound = cost;
    }
  }
  if (cost == plan.lower_bound) plan.optimal = ChainProof::kAll;
  for (const ChainInstruction& in : instructions) plan.program.push(in);
  const ChainReplay replayed = replay(s.problem, instructions);
  REPRISE_CHECK(!replayed.fault, "a plan that the chain does not allow: {}",
                replayed.fault->message);
  REPRISE_CHECK(replayed.peak <= budget && replayed.cost == cost,
                "a plan of {} bytes and cost {}, for {} bytes and cost {}", replayed.peak,
                replayed.cost, budget, cost);
  plan.cost = replayed.cost;
  plan.peak = replayed.peak;
  return plan;
}

ChainOutcome solve_chain(const ChainProblem& problem, Bytes budget, const ChainOptions& options) {
  return ChainSolver(problem, options).plan(budget);
}

}  // namespace reprise::planner
