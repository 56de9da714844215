#pragma once

// From a prepared graph and a budget to a verified schedule with its figures. Shared by every
// command.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "api/costs.h"
#include "base/bytes.h"
#include "graph/prepared.h"
#include "planner/strategy.h"
#include "schedule/schedule.h"

namespace reprise::api {

using base::Bytes;

// A budget as a user says it.
struct Budget {
  enum class Kind : std::uint8_t { kBytes, kPercent, kFloor, kUnlimited } kind = Kind::kUnlimited;
  Bytes bytes = 0;
  double percent = 0;  // of keep_all_bytes
};
// "300MiB", "40%", "floor" (the least that the chosen planner can plan for), "unlimited". Throws
// Error(kInput) for 0, negative and nonsense.
[[nodiscard]] Budget parse_budget(std::string_view text);
// The bytes it stands for, given what keeping everything takes and what no limit means. `floor` is
// asked for a floor only: it may cost a search.
[[nodiscard]] Bytes resolve_budget(const Budget& budget, Bytes keep_all, Bytes unlimited,
                                   const std::function<Bytes()>& floor);

struct PlanOptions {
  std::string planner = "auto";
  Budget budget{};
  int segments = 0;
  std::uint64_t seed = 1;
  // Effort of the local search per op and level; 0: the planner's default.
  std::int64_t search_moves = 0;
  // Searches side by side, which never changes the plan; 0: one for each core of this process.
  int threads = 0;
  bool find_floor = true;  // false leaves floor_bytes at 0 and the certificate to turn_bound.h,
                           // which saves two searches
};

// The figures of `reprise plan --json` (DESIGN.md fixes the names).
struct PlanReport {
  std::string model, planner;
  std::int64_t nodes = 0;
  Bytes budget_bytes = 0, peak_bytes = 0, keep_all_bytes = 0;
  Bytes floor_bytes = 0;         // of auto, whatever planner is asked for
  Bytes memory_bound_bytes = 0;  // no schedule takes less
  Bytes persistent_bytes =
      0;  // parameters, optimizer state and states: there whatever is recomputed
  std::int64_t cost_ns = 0, keep_all_cost_ns = 0, lower_bound_ns = 0;
  double overhead = 0, gap = 0, fragmentation = 0;
  std::int64_t recomputed_nodes = 0;
  double plan_ms = 0;
  CostOrigin costs{};      // where cost_ns and its like come from
  std::int64_t chunk = 0;  // time steps that one node computes; 0 for models without, and where
                           // nobody said
  std::int64_t micro_batches = 1;  // of one step, where somebody said
  std::string precision = "f32";   // "bf16" where some values of the step are
};

struct PlannedTraining {
  schedule::PlannedStep step;
  PlanReport report;
};
// Prepared graph + options -> verified schedule, or why not. Shared by every command. `costs` says
// where those of the graph come from; it goes into the report.
[[nodiscard]] std::variant<PlannedTraining, planner::Infeasible> plan_step(
    const graph::PreparedGraph& prepared, const PlanOptions& options, const CostOrigin& costs = {});

}  // namespace reprise::api
