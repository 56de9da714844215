// Without Clp: no multipliers, and so only the bounds that need none.

#include "planner/linear_program.h"

namespace reprise::planner {

std::optional<std::vector<double>> row_multipliers(const LinearProgram&, const LpOptions&) {
  return std::nullopt;
}

}  // namespace reprise::planner
