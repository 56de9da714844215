#pragma once

// The cheapest order within a budget of live bytes, proven, for small problems: shortest path (A*)
// over what has run for good and what is resident.

#include <cstdint>
#include <functional>

#include "planner/exact_model.h"
#include "planner/frontier.h"

namespace reprise::planner {

struct ExactAnswer {
  enum class Kind : std::uint8_t {
    kOptimal,     // `order` is cheapest among all whose live peak is within the budget
    kInfeasible,  // no order fits
    kGivenUp,     // too large, out of states or stopped: `cost_bound` is all that is known
  } kind = Kind::kGivenUp;
  Order order;
  schedule::Choices choices{};  // the algorithm of each op
  std::int64_t cost = 0;
  std::int64_t cost_bound = 0;  // no order within the budget is cheaper
  std::int64_t states = 0;      // reached, again ones included
};

// Deterministic. Gives up when the problem does not fit the model, after `most_states` states
// opened (about 100 bytes each), and when `stop`, asked now and then, says so.
//
// The search itself may run an op with one algorithm now and another later, which no plan may:
// cheaper than any plan, then. Where its optimum does, the op is held to each of them in turn, the
// cheapest such problem first (branch and bound), until an optimum does not.
[[nodiscard]] ExactAnswer solve_exactly(const ExactModel& model, Bytes budget,
                                        std::int64_t most_states,
                                        const std::function<bool()>& stop = {});

// The whole frontier of live peak and cost, offered to `frontier` together with what it proves,
// from the cheapest orders down to the smallest peak or until `most_states` are used up. True when
// nothing was left open.
bool offer_exact(const Request& request, std::int64_t most_states, Frontier& frontier);

}  // namespace reprise::planner
