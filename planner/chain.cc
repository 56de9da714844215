#include "planner/chain_candidates.h"
#include "planner/strategies.h"

namespace reprise::planner {
namespace {

class Chain final : public FrontierStrategy {
 public:
  std::string_view name() const override { return "chain"; }
  std::string_view summary() const override {
    return "stages as a chain, solved by a dynamic programme with a choice of what each records";
  }

 private:
  void solve(const Request& request, Frontier& frontier) const override {
    frontier.offer(program_order(*request.problem, request.order), "keep_all");
    offer_chains(Structure(*request.problem, request.order), request, frontier);
  }
};

}  // namespace

const Strategy& chain_strategy() {
  static const Chain strategy;
  return strategy;
}

}  // namespace reprise::planner
