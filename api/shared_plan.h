#pragma once

// One plan for several sessions of a process, which would all find the same.

#include <mutex>
#include <optional>
#include <variant>

#include "api/plan.h"

namespace reprise::api {

// Thread-safe. The first to ask plans, on its own thread, while the others wait; where that throws,
// the next one tries for itself.
class SharedPlan {
 public:
  // As plan_step(). A graph other than the one planned for gets a plan of its own. All callers have
  // the same options and costs.
  [[nodiscard]] std::variant<PlannedTraining, planner::Infeasible> plan(
      const graph::PreparedGraph& prepared, const PlanOptions& options, const CostOrigin& costs);

 private:
  struct Known {
    graph::PreparedGraph graph;
    std::variant<PlannedTraining, planner::Infeasible> outcome;
  };
  std::mutex mutex_;
  std::optional<Known> known_;
};

}  // namespace reprise::api
