#include "planner/decision.h"
#include "planner/strategies.h"

namespace reprise::planner {
namespace {

class KeepAll final : public FrontierStrategy {
 public:
  std::string_view name() const override { return "keep_all"; }
  std::string_view summary() const override { return "runs each op once; recomputes nothing"; }

 private:
  void solve(const Request& request, Frontier& frontier) const override {
    // Program order as it is: nothing runs again, so that nothing has to wait.
    frontier.offer(program_order(*request.problem, request.order), "keep_all");
  }
};

}  // namespace

const Strategy& keep_all_strategy() {
  static const KeepAll strategy;
  return strategy;
}

}  // namespace reprise::planner
