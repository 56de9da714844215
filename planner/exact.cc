#include <algorithm>
#include <limits>

#include "base/error.h"
#include "planner/exact_search.h"
#include "planner/strategies.h"

namespace reprise::planner {
namespace {

// States for each unit of Request::search_moves.
constexpr std::int64_t kStatesPerMove = 5'000;

class Exact final : public FrontierStrategy {
 public:
  std::string_view name() const override { return "exact"; }
  std::string_view summary() const override {
    return "proven optima for small problems (up to about 30 ops); keep_all where it gets no "
           "further";
  }

 private:
  void solve(const Request& request, Frontier& frontier) const override {
    frontier.offer(program_order(*request.problem, request.order), "keep_all");
    offer_exact(request, request.search_moves * kStatesPerMove, frontier);
  }
};

}  // namespace

bool offer_exact(const Request& request, std::int64_t most_states, Frontier& frontier) {
  const ExactModel model(*request.problem, request.order);
  Bytes budget = std::numeric_limits<Bytes>::max();
  while (budget >= 0) {
    const ExactAnswer answer = solve_exactly(model, budget, most_states, request.stop);
    if (answer.kind == ExactAnswer::Kind::kInfeasible) {
      frontier.prove_floor(budget + 1);
      return true;
    }
    frontier.prove_cost(budget, answer.cost_bound);
    if (answer.kind == ExactAnswer::Kind::kGivenUp) return false;
    most_states -= answer.states;
    const schedule::TraceResult traced =
        schedule::trace_order(*request.problem, answer.order, answer.choices);
    const Bytes peak = schedule::profile_memory(traced.trace).peak;
    REPRISE_CHECK(!traced.fault && peak <= budget, "an exact order of {} bytes within {}", peak,
                  budget);
    frontier.offer(answer.order, "exact");
    budget = peak - 1;
  }
  return true;
}

const Strategy& exact_strategy() {
  static const Exact strategy;
  return strategy;
}

}  // namespace reprise::planner
