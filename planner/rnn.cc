#include <algorithm>
#include <cmath>
#include <tuple>

#include "fmt/format.h"

#include "planner/candidates.h"
#include "planner/chain/stages.h"
#include "planner/chain/uniform.h"
#include "planner/chain_candidates.h"
#include "planner/strategies.h"

namespace reprise::planner {
namespace {

constexpr Index kLeastPeriods = 8;
constexpr Index kLongestPeriod = 2'000;
constexpr int kBudgets = 12;

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

using Kind = std::tuple<std::int64_t, Bytes, Bytes, std::size_t, std::size_t>;

Kind kind_of(const Structure& s, Index i) {
  const schedule::Op& op = s.op(i);
  Bytes bytes = 0;
  for (TensorId t : op.outputs) bytes += s.problem().tensors[t].bytes;
  return {op.cost, op.workspace, bytes, op.inputs.size(), op.outputs.size()};
}

// The shortest shift that maps nine tenths of the forward part on itself; 0 for none.
Index find_period(const Structure& s) {
  std::vector<Kind> kinds;
  for (Index i = 0; i < s.turn(); ++i) kinds.push_back(kind_of(s, i));
  for (Index p = 1; p <= std::min(kLongestPeriod, s.turn() / kLeastPeriods); ++p) {
    Index different = 0;
    const Index most = std::max<Index>(s.turn() / 10, 1);
    for (Index i = 0; i + p < s.turn() && different <= most; ++i) {
      different += kinds[at(i)] != kinds[at(i + p)];
    }
    if (different <= most) return p;
  }
  return 0;
}

// Cuts every `period` ops, where in the middle of the chain the fewest bytes cross.
std::vector<Index> cut_periods(const Structure& s, Index period, Index unit) {
  const std::vector<Bytes> crossing = crossing_bytes(s);
  const Index middle = s.turn() / 2 / unit * unit;
  Index phase = 0;
  for (Index f = 0; f < unit && middle + f < s.turn(); ++f) {
    if (crossing[at(middle + f)] < crossing[at(middle + phase)]) phase = f;
  }
  std::vector<Index> cuts = {0};
  for (Index i = phase + (phase < unit / 2 ? period : 0); i < s.turn(); i += period) {
    if (i > 0) cuts.push_back(i);
  }
  return cuts;
}

UniformChain middle_of(const ChainProblem& problem) {
  const Stage& s = problem.stages[problem.stages.size() / 2];
  const StageOption& o = s.options[0];
  UniformChain c;
  c.steps = static_cast<std::int64_t>(problem.stages.size());
  c.a = s.output;
  c.b = o.record;
  c.g = s.output_gradient;
  c.uf = s.forward_cost;
  c.ub = o.backward_cost;
  c.of = std::max(s.forward_workspace, o.forward_workspace);
  c.ob = o.backward_workspace;
  return c;
}

class Rnn final : public FrontierStrategy {
 public:
  std::string_view name() const override { return "rnn"; }
  std::string_view summary() const override {
    return "equal stages of a forward part that repeats, planned as a uniform chain of any length";
  }

 private:
  void solve(const Request& request, Frontier& frontier) const override {
    frontier.offer(program_order(*request.problem, request.order), "keep_all");
    offer_periods(Structure(*request.problem, request.order), request.stop, frontier);
  }
};

}  // namespace

void offer_periods(const Structure& structure, const std::function<bool()>& stop,
                   Frontier& frontier) {
  const Index unit = find_period(structure);
  if (unit == 0) return;
  const std::vector<bool> keep_all(at(structure.tensors()), false);
  // Stages of one, four, sixteen ... periods: longer ones lose little and have fewer cuts.
  for (Index period = unit; structure.turn() / period >= kLeastPeriods; period *= 4) {
    const StagedGraph graph(structure, cut_periods(structure, period, unit), {keep_all});
    const UniformChain chain = middle_of(graph.chain());
    const Bytes all = chain.a + chain.steps * chain.b + 2 * chain.g + chain.of + chain.ob;
    const ChainOutcome none = solve_chain(chain, 0);
    const auto* refused = std::get_if<ChainInfeasible>(&none);
    const Bytes floor = refused != nullptr ? refused->floor : 0;
    std::int64_t last = -1;
    for (int b = 0; b <= kBudgets; ++b) {
      if (stop && stop()) return;
      // Closer together towards the floor.
      const double share = std::pow(static_cast<double>(b) / kBudgets, 2);
      const ChainOutcome outcome =
          solve_chain(chain, floor + static_cast<Bytes>(share * static_cast<double>(all)));
      const auto* plan = std::get_if<ChainPlan>(&outcome);
      if (plan == nullptr) break;
      if (plan->cost == last) continue;
      last = plan->cost;
      schedule::Order order = graph.order(plan->program, std::int64_t{20} * structure.ops() + 1000);
      if (!order.empty()) {
        frontier.offer(std::move(order), fmt::format("rnn({} stages)", graph.stages()));
      }
    }
  }
}

const Strategy& rnn_strategy() {
  static const Rnn strategy;
  return strategy;
}

}  // namespace reprise::planner
