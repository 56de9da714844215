#include "planner/blocks.h"
#include "planner/candidates.h"
#include "planner/chain_candidates.h"
#include "planner/exact_search.h"
#include "planner/focus.h"
#include "planner/ladder.h"
#include "planner/strategies.h"

namespace reprise::planner {
namespace {

constexpr std::int64_t kInstantStates = 20'000;  // some tens of milliseconds

class Auto final : public FrontierStrategy {
 public:
  std::string_view name() const override { return "auto"; }
  std::string_view summary() const override { return "the cheapest of all known plans that fits"; }

 private:
  void solve(const Request& request, Frontier& frontier) const override {
    frontier.offer(program_order(*request.problem, request.order), "keep_all");
    if (offer_exact(request, kInstantStates, frontier) && frontier.packed_tightly()) return;
    const Structure structure(*request.problem, request.order);
    const bool large_and_repeated = offer_blocks(structure, request, frontier);
    offer_periods(structure, request, frontier);
    if (!large_and_repeated) {
      offer_chains(structure, request, frontier);
      // What is no better than a known plan is not packed; so what is mostly no better comes last.
      if (structure.ops() <= kMostSearchedOps) offer_all(structure, frontier);
      offer_revolve(structure, request.stop, frontier);
      offer_segments_of_any_number(structure, frontier);
      offer_sqrt_n(structure, frontier);
    }
    if (request.stop) {
      offer_focused(structure, request, frontier);
    } else if (structure.ops() <= kMostSearchedOps) {
      offer_searched(structure, request, frontier);
    }
  }

  [[nodiscard]] std::vector<Way> further_ways_for_passes() const override {
    const auto way = [](auto offer) {
      return [offer](const Request& request, Frontier& frontier) {
        frontier.offer(program_order(*request.problem, request.order), "keep_all");
        offer(Structure(*request.problem, request.order), request, frontier);
      };
    };
    return {way([](const Structure& structure, const Request& request, Frontier& frontier) {
              offer_revolve(structure, request.stop, frontier);
            }),
            way([](const Structure& structure, const Request&, Frontier& frontier) {
              offer_segments_of_any_number(structure, frontier);
            }),
            way([](const Structure& structure, const Request&, Frontier& frontier) {
              offer_sqrt_n(structure, frontier);
            })};
  }
};

}  // namespace

const Strategy& auto_strategy() {
  static const Auto strategy;
  return strategy;
}

}  // namespace reprise::planner
