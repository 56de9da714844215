#pragma once

// The cheapest plan for a chain within a budget. What is handed out was replayed by ChainMachine.

#include <cstdint>
#include <functional>
#include <memory>
#include <variant>

#include "planner/chain/chain.h"
#include "planner/chain/program.h"
#include "planner/chain/staircase.h"

namespace reprise::planner {

// Over which schedules of the table in chain.h a plan is proven to cost least. Persistent: what
// outlives an op that read it stays until its own backward stage, and nothing is dropped.
enum class ChainProof : std::uint8_t { kNone, kPersistent, kAll };

struct ChainPlan {
  ChainProgram program;
  std::int64_t cost = 0;
  Bytes peak = 0;
  Bytes floor = 0;                    // smallest budget with a plan
  std::int64_t lower_bound = 0;       // proven for all schedules within the budget
  std::int64_t persistent_bound = 0;  // proven for persistent ones; at least lower_bound
  ChainProof optimal = ChainProof::kNone;
};

// Below the floor; `floor` is the smallest budget of any persistent schedule (chains of up to 2,000
// stages; beyond, of any that was found).
struct ChainInfeasible {
  Bytes floor = 0;
};

// The search was stopped before it knew any plan.
struct ChainStopped {};

using ChainOutcome = std::variant<ChainPlan, ChainInfeasible, ChainStopped>;

struct ChainOptions {
  std::function<bool()> stop{};  // asked now and then; true ends the search
  bool drop_inputs = true;       // also schedules that keep a record without its input
  int threads = 1;               // no plan depends on it
};

// Solves once, answers all budgets.
class ChainSolver {
 public:
  // Throws Error(kInput) for a problem that validate() refuses.
  explicit ChainSolver(ChainProblem problem, ChainOptions options = {});
  ~ChainSolver();
  ChainSolver(ChainSolver&&) noexcept;
  ChainSolver& operator=(ChainSolver&&) noexcept;

  [[nodiscard]] const ChainProblem& problem() const;
  // Smallest budget and cost of each plan there is, by rising budget; empty when stopped.
  [[nodiscard]] const Staircase& answers() const;
  [[nodiscard]] ChainOutcome plan(Bytes budget) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] ChainOutcome solve_chain(const ChainProblem& problem, Bytes budget,
                                       const ChainOptions& options = {});

// All stages alike: `steps` of them, a = a[i], b = b[i+1], and so on.
struct UniformChain {
  std::int64_t steps = 0;
  Bytes a = 0, b = 0, g = 0;
  std::int64_t uf = 0, ub = 0;
  Bytes of = 0, ob = 0;
  std::int64_t ul = 0;
  Bytes ol = 0;
  friend bool operator==(const UniformChain&, const UniformChain&) = default;
};

// Written out stage by stage.
[[nodiscard]] ChainProblem expand(const UniformChain& chain);

// Exact up to about a thousand steps, then by slopes and rollout (uniform.h). Throws Error(kInput)
// for negative numbers, b < a, more than 10,000,000 steps, and sums beyond 2^63.
[[nodiscard]] ChainOutcome solve_chain(const UniformChain& chain, Bytes budget,
                                       const ChainOptions& options = {});

}  // namespace reprise::planner
