#include "planner/candidates.h"
#include "planner/focus.h"
#include "planner/ladder.h"
#include "planner/strategies.h"

namespace reprise::planner {
namespace {

class Dag final : public FrontierStrategy {
 public:
  std::string_view name() const override { return "dag"; }
  std::string_view summary() const override {
    return "local search over the order of single ops, for any graph; slow above a few thousand "
           "ops";
  }

 private:
  void solve(const Request& request, Frontier& frontier) const override {
    frontier.offer(program_order(*request.problem, request.order), "keep_all");
    const Structure structure(*request.problem, request.order);
    offer_all(structure, frontier);
    if (request.stop) {
      offer_focused(structure, request, frontier);
    } else {
      offer_searched(structure, request, frontier);
    }
  }
};

}  // namespace

const Strategy& dag_strategy() {
  static const Dag strategy;
  return strategy;
}

}  // namespace reprise::planner
