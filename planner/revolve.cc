#include "planner/candidates.h"
#include "planner/strategies.h"

namespace reprise::planner {
namespace {

// Griewank and Walther, "Algorithm 799: revolve" (2000): n equal stretches, s of them held.
class Revolve final : public FrontierStrategy {
 public:
  std::string_view name() const override { return "revolve"; }
  std::string_view summary() const override {
    return "n stretches of equal activation bytes with s checkpoints that move back as revolve "
           "places them";
  }

 private:
  void solve(const Request& request, Frontier& frontier) const override {
    frontier.offer(program_order(*request.problem, request.order), "keep_all");
    offer_revolve(Structure(*request.problem, request.order), request.stop, frontier);
  }
};

}  // namespace

const Strategy& revolve_strategy() {
  static const Revolve strategy;
  return strategy;
}

}  // namespace reprise::planner
