#include "planner/strategy.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "planner/algorithms.h"
#include "planner/frontier.h"
#include "planner/passes.h"
#include "planner/strategies.h"
#include "planner/structure.h"

namespace reprise::planner {

namespace {

void check_problem(const Problem& problem, OrderFreedom freedom) {
  schedule::validate(problem);
  const schedule::TraceResult traced =
      schedule::trace_order(problem, program_order(problem, freedom));
  if (traced.fault) {
    throw base::input_error("problem '{}': its program order is no execution: {}", problem.name,
                            traced.fault->message);
  }
}

}  // namespace

class PlanCache {
 public:
  using Key = std::tuple<std::string, Measure, OrderFreedom, std::uint64_t, int, Bytes,
                         std::int64_t, std::int64_t, Bytes>;
  static Key key_of(std::string_view strategy, const Request& request) {
    return {std::string(strategy),
            request.measure,
            request.order,
            request.seed,
            request.segments,
            request.packing.alignment,
            request.packing.search_nodes,
            request.search_moves,
            request.stop ? request.budget : 0};  // a caller with a clock has one budget in mind
  }
  // What other requests have led to is there for this one too: that keeps costs from rising with
  // the budget where each budget has a search of its own.
  void offer_known(const Request& request, Frontier& frontier) const {
    for (const auto& [key, known] : frontiers) {
      if (std::get<1>(key) != request.measure || std::get<2>(key) != request.order) continue;
      for (const Plan& plan : known->plans()) frontier.offer(plan.order, plan.strategy);
    }
  }
  const Problem* problem = nullptr;
  std::map<Key, std::shared_ptr<const Frontier>> frontiers;
};

std::shared_ptr<PlanCache> make_plan_cache() {
  return std::make_shared<PlanCache>();
}

std::shared_ptr<const Frontier> FrontierStrategy::frontier(const Request& request) const {
  REPRISE_CHECK(request.problem != nullptr, "a request without a problem");
  if (request.cache) {
    const Problem*& known = request.cache->problem;
    REPRISE_CHECK(known == nullptr || known == request.problem, "a plan cache of another problem");
    known = request.problem;
    const auto found = request.cache->frontiers.find(PlanCache::key_of(name(), request));
    if (found != request.cache->frontiers.end()) return found->second;
  }
  check_problem(*request.problem, request.order);
  auto result = std::make_shared<Frontier>(request);
  if (request.cache && request.stop) request.cache->offer_known(request, *result);
  if (offers_algorithms(*request.problem)) offer_leanest(request, *result);
  solve_whole_or_passes(request, *result);
  // What a strategy knows may all be out of order; the program itself never is.
  if (result->empty()) result->offer(program_order(*request.problem, request.order), "keep_all");
  result->polish(request.stop);
  REPRISE_CHECK(!result->empty(), "strategy '{}' found no plan at all", name());
  if (request.cache) {
    request.cache->frontiers.emplace(PlanCache::key_of(name(), request), result);
  }
  return result;
}

// A step of several passes is planned pass by pass; a small one also as a whole, which may be
// better and can be proven.
void FrontierStrategy::solve_whole_or_passes(const Request& request, Frontier& frontier) const {
  constexpr std::size_t kSmall = 200;
  const std::vector<Pass> passes = split_into_passes(*request.problem);
  if (passes.empty() || request.problem->ops.size() <= kSmall) solve(request, frontier);
  if (passes.empty()) return;
  frontier.offer(program_order(*request.problem, request.order), "keep_all");
  offer_passes(
      request, passes, [this](const Request& of_pass, Frontier& known) { solve(of_pass, known); },
      frontier);
  for (const Way& way : further_ways_for_passes()) offer_passes(request, passes, way, frontier);
}

// What the strategy knows when every op takes its leanest algorithm: the floor lies there. A
// problem of its own, without search and with a frontier of its own: what is proven for it does not
// hold for the request's. The orders then take the algorithms that suit each level of memory.
void FrontierStrategy::offer_leanest(const Request& request, Frontier& frontier) const {
  const Problem lean = leanest_problem(*request.problem);
  Request question = request;
  question.problem = &lean;
  question.cache = nullptr;
  question.stop = nullptr;
  question.search_moves = 0;
  question.packing.search_nodes = 0;
  Frontier known(question);
  solve_whole_or_passes(question, known);
  for (const Plan& plan : known.plans()) frontier.offer(plan.order, plan.strategy);
}

Outcome FrontierStrategy::plan(const Request& request) const {
  if (request.budget <= 0) {
    throw base::input_error("a budget of {} bytes; it must be positive", request.budget);
  }
  const std::shared_ptr<const Frontier> known = frontier(request);
  if (std::optional<Plan> plan = known->pack_within(request.budget, request.stop)) {
    plan->cost_lower_bound = known->cost_bound(request.budget);
    return *std::move(plan);
  }
  Infeasible answer = explain_floor(*request.problem, known->plans().front());
  answer.proven_floor = known->proven_floor();
  return answer;
}

Bytes FrontierStrategy::floor(const Request& request) const {
  return frontier(request)->plans().front().arena;
}

std::vector<const Strategy*> all_strategies() {
  return {&auto_strategy(),     &chain_strategy(),  &revolve_strategy(), &rnn_strategy(),
          &dag_strategy(),      &blocks_strategy(), &exact_strategy(),   &keep_all_strategy(),
          &segments_strategy(), &sqrt_n_strategy()};
}

const Strategy& find_strategy(std::string_view name) {
  std::string names;
  for (const Strategy* strategy : all_strategies()) {
    if (strategy->name() == name) return *strategy;
    names += names.empty() ? "" : ", ";
    names += strategy->name();
  }
  throw base::input_error("no planner '{}'; there are {}", name, names);
}

}  // namespace reprise::planner
