#include "planner/chain_candidates.h"
#include "planner/strategies.h"

namespace reprise::planner {
namespace {

class Rnn final : public FrontierStrategy {
 public:
  std::string_view name() const override { return "rnn"; }
  std::string_view summary() const override {
    return "equal stages of a forward part that repeats, planned as a uniform chain of any length";
  }

 private:
  void solve(const Request& request, Frontier& frontier) const override {
    frontier.offer(program_order(*request.problem, request.order), "keep_all");
    offer_periods(Structure(*request.problem, request.order), request, frontier);
  }
};

}  // namespace

const Strategy& rnn_strategy() {
  static const Rnn strategy;
  return strategy;
}

}  // namespace reprise::planner
