#include <algorithm>

#include "base/error.h"
#include "planner/chain/bound.h"
#include "planner/chain/simulate.h"
#include "planner/chain/uniform.h"

namespace reprise::planner {
namespace {

// Chains up to here are solved exactly; of longer ones, parts up to the second number.
constexpr std::int64_t kMostStepsExact = 1'000;
constexpr std::int64_t kMostStepsOfParts = 200;

// The bound of bound.h in closed form.
std::int64_t lower_bound(const UniformChain& c, Bytes budget) {
  const std::int64_t once = c.steps * (c.uf + c.ub) + c.ul;
  if (c.b == 0) return once;
  const Bytes room = std::max<Bytes>(budget - c.a - c.g - c.ol, 0);
  const std::int64_t recorded = room / c.b;
  if (recorded >= c.steps) return once;
  const double part = static_cast<double>(room % c.b) / static_cast<double>(c.b);
  const double saved = static_cast<double>(c.uf) * part * (1 + 1e-12);
  return once + (c.steps - recorded) * c.uf - std::min(static_cast<std::int64_t>(saved), c.uf);
}

}  // namespace

ChainOutcome solve_chain(const UniformChain& chain, Bytes budget, const ChainOptions& options) {
  validate(chain);
  const bool exact = chain.steps <= kMostStepsExact;
  const auto parts =
      static_cast<std::int32_t>(std::min(chain.steps, exact ? chain.steps : kMostStepsOfParts));
  const Bytes all =
      chain.steps * chain.b + 4 * (chain.g + chain.a) + chain.of + chain.ob + chain.ol;
  const Bytes memory = std::min(budget - chain.a, all);
  const UniformSlopes slopes(chain, memory);
  const Bytes floor = slopes.floor(true, chain.steps) + chain.a;
  if (budget < floor) return ChainInfeasible{floor};
  const UniformTable table(chain, parts, parts, memory, options.stop);
  if (!table.complete()) return ChainStopped{};
  ChainPlan plan;
  plan.program = roll_out(chain, table, slopes, memory);
  plan.floor = floor;
  const ChainProblem problem = expand(chain);
  ChainMachine machine(problem);
  plan.program.for_each([&](ChainInstruction in) { machine.run(in); });
  const ChainReplay replayed = machine.finish();
  REPRISE_CHECK(!replayed.fault, "a plan that the chain does not allow: {}",
                replayed.fault->message);
  REPRISE_CHECK(replayed.peak <= budget, "a plan of {} bytes for {}", replayed.peak, budget);
  plan.cost = replayed.cost;
  plan.peak = replayed.peak;
  plan.lower_bound = lower_bound(chain, budget);
  plan.persistent_bound =
      exact ? plan.cost
            : std::max(plan.lower_bound, *slopes.bound(true, chain.steps, memory, false));
  if (plan.cost == plan.persistent_bound) plan.optimal = ChainProof::kPersistent;
  if (plan.cost == plan.lower_bound) plan.optimal = ChainProof::kAll;
  return plan;
}

}  // namespace reprise::planner
