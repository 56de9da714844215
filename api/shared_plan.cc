#include "api/shared_plan.h"

namespace reprise::api {

std::variant<PlannedTraining, planner::Infeasible> SharedPlan::plan(
    const graph::PreparedGraph& prepared, const PlanOptions& options, const CostOrigin& costs) {
  std::unique_lock lock(mutex_);
  if (!known_) {
    known_.emplace(Known{prepared, plan_step(prepared, options, costs)});
    return known_->outcome;
  }
  if (known_->graph == prepared) return known_->outcome;
  lock.unlock();
  return plan_step(prepared, options, costs);
}

}  // namespace reprise::api
