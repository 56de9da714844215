#include "planner/strategy.h"
#include "planner/structure.h"

namespace reprise::planner {

std::int64_t cost_lower_bound(const Problem& problem, OrderFreedom freedom) {
  const std::vector<bool> required = required_ops(problem, freedom);
  std::int64_t cost = 0;
  for (std::size_t i = 0; i < required.size(); ++i) {
    if (required[i]) cost += problem.ops[schedule::OpId(i)].cost;
  }
  return cost;
}

}  // namespace reprise::planner
