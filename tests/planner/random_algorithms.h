#pragma once

// Further algorithms for the ops of a random problem: up to three, each leaner and dearer.

#include <random>

#include "schedule/problem.h"
#include "tests/schedule/random_problem.h"

namespace reprise::planner::testing {

inline void add_random_algorithms(std::mt19937_64& random, schedule::Problem& problem,
                                  std::int64_t most_ops) {
  using schedule::testing::draw;
  for (schedule::Op& op : problem.ops) {
    if (most_ops == 0 || draw(random, 0, 2) == 0) continue;
    std::vector<schedule::Algorithm> all{{op.workspace, op.cost}};
    for (std::int64_t more = draw(random, 1, 3); more > 0; --more) {
      all.push_back({draw(random, 0, 12), op.cost + draw(random, -3, 9)});
      all.back().cost = std::max<std::int64_t>(all.back().cost, 0);
    }
    (void)schedule::set_algorithms(op, all);
    if (op.choices() > 1) --most_ops;
  }
}

}  // namespace reprise::planner::testing
