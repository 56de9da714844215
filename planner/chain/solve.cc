#include "planner/chain/solve.h"

#include <algorithm>

#include "base/error.h"
#include "planner/chain/bound.h"
#include "planner/chain/envelope.h"
#include "planner/chain/floor.h"
#include "planner/chain/shortest.h"
#include "planner/chain/simulate.h"
#include "planner/chain/table.h"

namespace reprise::planner {
namespace {

// Up to here both tables are exact, then only the persistent one; longer chains are looked at
// through a window (table.h).
constexpr std::size_t kMostStagesWithDrops = 100;
constexpr std::size_t kMostStagesExact = 220;
constexpr std::size_t kMostStagesOfFloor = 2'000;  // beyond the exact table: a quarter of a second
constexpr std::size_t kMostStages = 4'000;         // at 1,000 stages, eight times that at 2,000
// Of the shortest path over all schedules.
constexpr std::int64_t kMostStates = 200'000;

void look_through_window(ChainTableOptions& table, std::size_t length) {
  table.window = table.drop_inputs ? 32 : 64;
  table.grid = static_cast<std::int32_t>(std::max<std::size_t>(8, length / 125));
  table.most_steps = table.drop_inputs ? 128 : 256;
  table.most_loss_steps = 4'000;
}

}  // namespace

struct ChainSolver::State {
  ChainProblem problem;
  ChainOptions options;
  std::unique_ptr<ChainTable> persistent, dropping;  // null when not worked out
  std::vector<ChainInstruction> smallest;            // what fits where nothing of the tables does
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
  if (length > kMostStages) {
    throw base::input_error("chain: {} stages; there may be {} where they differ", length,
                            kMostStages);
  }
  ChainTableOptions table;
  if (length > kMostStagesExact) look_through_window(table, length);
  table.stop = s.options.stop;
  table.threads = s.options.threads;
  s.persistent = std::make_unique<ChainTable>(s.problem, table);
  if (!s.persistent->complete()) return;
  constexpr Bytes kUnlimited = Bytes{1} << 62;
  Envelope best(kUnlimited, MemoryCells(kUnlimited, 1));
  best.add(s.persistent->answers(), 0, 0, 0, {});
  if (s.options.drop_inputs) {
    table.drop_inputs = true;
    if (length > kMostStagesWithDrops) look_through_window(table, length);
    s.dropping = std::make_unique<ChainTable>(s.problem, table);
    if (!s.dropping->complete()) s.dropping.reset();
  }
  if (s.dropping) best.add(s.dropping->answers(), 0, 0, 0, {});
  if (!s.persistent->exact() && length <= kMostStagesOfFloor) {
    const ChainFloor floor(s.problem);
    if (floor.budget() < best.stairs().front().memory) {
      s.smallest = floor.plan();
      best.add(floor.budget(), replay(s.problem, s.smallest).cost, {});
    }
  }
  s.answers = best.stairs();
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
  const Bytes floor = s.answers.front().memory;
  if (budget < floor) return ChainInfeasible{floor};
  const StairStep* persistent = step_within(s.persistent->answers(), budget);
  ChainPlan plan;
  plan.floor = floor;
  plan.lower_bound = chain_lower_bound(s.problem, budget);
  plan.persistent_bound =
      s.persistent->exact() && persistent != nullptr ? persistent->cost : plan.lower_bound;
  plan.optimal = s.persistent->exact() ? ChainProof::kPersistent : ChainProof::kNone;
  std::int64_t cost =
      persistent != nullptr ? persistent->cost : std::numeric_limits<std::int64_t>::max();
  std::vector<ChainInstruction> instructions;
  const StairStep* dropping = s.dropping ? step_within(s.dropping->answers(), budget) : nullptr;
  if (dropping != nullptr && dropping->cost < cost) {
    cost = dropping->cost;
    instructions = s.dropping->plan(budget);
  } else if (persistent != nullptr) {
    instructions = s.persistent->plan(budget);
  } else {
    instructions = s.smallest;
    cost = replay(s.problem, instructions).cost;
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
