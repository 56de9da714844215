#include <algorithm>
#include <cmath>

#include "fmt/format.h"

#include "planner/candidates.h"
#include "planner/chain/solve.h"
#include "planner/chain/stages.h"
#include "planner/chain_candidates.h"
#include "planner/strategies.h"

namespace reprise::planner {
namespace {

constexpr int kBudgets = 12;
constexpr Index kMostStages = 64;

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

// Tensors that cost least for their bytes, up to a share of the bytes that backward ops read.
std::vector<bool> cheapest(const Structure& s, double share) {
  std::vector<Index> tensors;
  double total = 0;
  for (Index t = 0; t < s.tensors(); ++t) {
    if (!s.droppable(t) || !s.read_after_turn(t) || s.producer(t) >= s.turn()) continue;
    tensors.push_back(t);
    total += static_cast<double>(s.tensor(t).bytes);
  }
  const auto price = [&](Index t) {
    return static_cast<double>(s.op(s.producer(t)).cost) /
           std::max(1.0, static_cast<double>(s.tensor(t).bytes));
  };
  std::stable_sort(tensors.begin(), tensors.end(),
                   [&](Index a, Index b) { return price(a) < price(b); });
  std::vector<bool> dropped(at(s.tensors()), false);
  double sum = 0;
  for (Index t : tensors) {
    if (sum >= share * total) break;
    dropped[at(t)] = true;
    sum += static_cast<double>(s.tensor(t).bytes);
  }
  return dropped;
}

class Chain final : public FrontierStrategy {
 public:
  std::string_view name() const override { return "chain"; }
  std::string_view summary() const override {
    return "stages as a chain, solved by a dynamic programme with a choice of what each records";
  }

 private:
  void solve(const Request& request, Frontier& frontier) const override {
    frontier.offer(program_order(*request.problem, request.order), "keep_all");
    offer_chains(Structure(*request.problem, request.order), request.stop, frontier);
  }
};

}  // namespace

void offer_chains(const Structure& structure, const std::function<bool()>& stop,
                  Frontier& frontier) {
  std::vector<std::vector<bool>> dropped;
  for (const double share : {0.0, 0.4, 0.7, 1.0}) dropped.push_back(cheapest(structure, share));
  std::size_t before = 0;
  for (Index k = 2; k <= std::min(kMostStages, most_segments(structure)); k *= 2) {
    if (stop && stop()) return;
    std::vector<Index> cuts = cut_evenly(structure, k);
    if (cuts.size() <= before) break;
    before = cuts.size();
    const StagedGraph graph(structure, std::move(cuts), dropped);
    const ChainSolver solver(graph.chain(), {stop, false});
    if (solver.answers().empty()) return;
    const Bytes low = solver.answers().front().memory;
    const auto range = static_cast<double>(solver.answers().back().memory - low);
    std::int64_t last = -1;
    for (int b = 0; b <= kBudgets; ++b) {
      if (stop && stop()) return;
      // Closer together towards the floor.
      const double share = std::pow(static_cast<double>(b) / kBudgets, 2);
      const Bytes budget = low + static_cast<Bytes>(share * range);
      const ChainOutcome outcome = solver.plan(budget);
      const auto* plan = std::get_if<ChainPlan>(&outcome);
      if (plan == nullptr || plan->cost == last) continue;
      last = plan->cost;
      schedule::Order order = graph.order(plan->program, std::int64_t{20} * structure.ops() + 1000);
      if (!order.empty())
        frontier.offer(std::move(order), fmt::format("chain({})", graph.stages()));
    }
  }
}

const Strategy& chain_strategy() {
  static const Chain strategy;
  return strategy;
}

}  // namespace reprise::planner
