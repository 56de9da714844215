#include "fmt/format.h"

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
    const Structure structure(*request.problem, request.order);
    Decision decision = keep_everything(structure);
    const std::int64_t limit = std::int64_t{20} * structure.ops() + 1000;
    for (Index n = 2; n <= std::min<Index>(most_segments(structure), 1024); n *= 2) {
      decision.segments = cut_evenly(structure, n);
      for (Index slots = 1; slots < n; slots *= 2) {
        if (request.stop && request.stop()) return;
        decision.slots = slots;
        if (auto order = make_order(structure, decision, limit)) {
          frontier.offer(*std::move(order), fmt::format("revolve({}, {})", n, slots));
        }
      }
    }
  }
};

}  // namespace

const Strategy& revolve_strategy() {
  static const Revolve strategy;
  return strategy;
}

}  // namespace reprise::planner
