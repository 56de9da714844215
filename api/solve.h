#pragma once

// The planner alone, on someone else's problem: a budget, a plan, how good it is. Pure but for the
// clock that the caller may bring as `stop`.

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "api/plan.h"
#include "planner/chain/solve.h"
#include "planner/problem_file.h"
#include "planner/strategy.h"

namespace reprise::api {

struct SolveOptions {
  Budget budget{};
  std::string planner = "auto";
  planner::OrderFreedom order = planner::OrderFreedom::kFree;
  bool arena = false;  // offsets too; then the packed arena is what must fit
  std::uint64_t seed = 1;
  int threads = 1;
  std::int64_t search_moves = 0;  // 0: the planner's default
  std::function<bool()> stop{};
};

// What both kinds of problem answer.
struct Certificate {
  std::int64_t lower_bound = 0;  // no plan within the budget costs less
  bool optimal = false;          // proven: no plan within the budget is cheaper
  double gap = 0;                // cost / lower_bound - 1; 0 when both are 0
};

struct GraphSolution {
  planner::Plan plan;
  Bytes budget = 0;  // bytes; the largest number when unlimited
  Bytes peak = 0;    // what counts against it: largest live sum, or the arena
  Bytes floor = 0;   // the smallest budget that this planner can plan for
  Bytes keep_all_peak = 0;
  std::int64_t keep_all_cost = 0;
  Certificate certificate;
};

// Throws Error(kInput) for an unknown planner or a problem whose program order is no execution.
[[nodiscard]] std::variant<GraphSolution, planner::Infeasible> solve_graph(
    const planner::OpGraphFile& file, const SolveOptions& options);

struct ChainSolution {
  planner::ChainPlan plan;
  Bytes budget = 0;
  Bytes keep_all_peak = 0;
  std::int64_t keep_all_cost = 0;
  Certificate certificate;
};

// Throws Error(kInput) for an unknown planner, or when the search ends before it knows a plan.
[[nodiscard]] std::variant<ChainSolution, planner::ChainInfeasible> solve_chain(
    const planner::ChainFile& file, const SolveOptions& options);
[[nodiscard]] std::variant<ChainSolution, planner::ChainInfeasible> solve_chain(
    const planner::UniformChainFile& file, const SolveOptions& options);

// A plan in the words of Model G: ops run, tensors dropped as soon as nobody reads them any more.
struct GraphInstruction {
  enum class Kind : std::uint8_t { kRun, kDrop } kind = Kind::kRun;
  std::size_t index = 0;  // of the op or the tensor
  friend bool operator==(const GraphInstruction&, const GraphInstruction&) = default;
};
[[nodiscard]] std::vector<GraphInstruction> graph_instructions(const planner::Problem& problem,
                                                               const planner::Order& order);

}  // namespace reprise::api
