#include "planner/frontier.h"

#include <algorithm>

#include "base/error.h"
#include "planner/algorithms.h"
#include "planner/structure.h"

namespace reprise::planner {
namespace {

// Effort of the packing that decides whether an order is worth keeping.
constexpr std::int64_t kScreeningNodes = 1'000;
// The plan that is handed out, and orders that only holes keep above the budget: as multiples of
// PackingOptions::search_nodes; small problems need no more nodes than the square of their buffers.
constexpr std::int64_t kFinalEffort = 50, kMissEffort = 10;
// How many such orders are looked at: those next in cost to what fits anyway. A larger budget
// never looks at cheaper ones only, so that it never costs more.
constexpr std::ptrdiff_t kMisses = 3;

// Levels of memory at which one order is taken in with other algorithms.
constexpr std::size_t kMostLevels = 32;

schedule::Trace trace_valid(const Problem& problem, const Order& order,
                            const schedule::Choices& choices) {
  schedule::TraceResult result = schedule::trace_order(problem, order, choices);
  REPRISE_CHECK(!result.fault, "planned an order that is no execution: {}",
                result.fault ? result.fault->message : "");
  return std::move(result.trace);
}

Plan describe(const Problem& problem, Order order, std::string strategy,
              const schedule::Trace& trace) {
  Plan plan;
  plan.strategy = std::move(strategy);
  plan.cost = trace.cost;
  plan.live_peak = schedule::profile_memory(trace).peak;
  std::vector<bool> ran(problem.ops.size(), false);
  for (schedule::OpId op : order) {
    if (ran[op.index()]) ++plan.recomputed;
    ran[op.index()] = true;
  }
  plan.order = std::move(order);
  return plan;
}

void pack_into(Plan& plan, const schedule::Trace& trace, const PackingOptions& options,
               const std::function<bool()>& stop = {}) {
  plan.packing = pack(trace.buffers.items(), options, stop);
  plan.arena = plan.packing.arena;
}

void take_if_smaller(Plan& plan, Packing packing) {
  if (packing.arena >= plan.arena) return;
  plan.arena = packing.arena;
  plan.packing = std::move(packing);
}

}  // namespace

Plan evaluate(const Problem& problem, Order order, std::string strategy,
              const PackingOptions& packing) {
  const schedule::Trace trace = trace_valid(problem, order, {});
  Plan plan = describe(problem, std::move(order), std::move(strategy), trace);
  pack_into(plan, trace, packing);
  return plan;
}

Frontier::Frontier(const Request& request)
    : problem_(request.problem),
      packing_(request.packing),
      measure_(request.measure),
      freedom_(request.order),
      algorithms_(offers_algorithms(*request.problem)),
      aim_(request.stop ? request.budget : 0) {}

bool Frontier::covers(Bytes arena, std::int64_t cost) const {
  const Plan* plan = cheapest_within(arena);
  return plan != nullptr && plan->cost <= cost;
}

const Plan* Frontier::cheapest_within(Bytes budget) const {
  const auto after = std::upper_bound(plans_.begin(), plans_.end(), budget,
                                      [](Bytes b, const Plan& p) { return b < p.arena; });
  return after == plans_.begin() ? nullptr : &*std::prev(after);
}

const Plan* Frontier::smallest_of_cost(std::int64_t cost) const {
  const auto first = std::partition_point(plans_.begin(), plans_.end(),
                                          [&](const Plan& plan) { return plan.cost > cost; });
  return first == plans_.end() ? nullptr : &*first;
}

std::int64_t Frontier::cost_bound(Bytes budget) const {
  std::int64_t bound = cost_lower_bound(*problem_, freedom_);
  for (const auto& [within, cost] : proven_costs_) {
    if (budget <= within) bound = std::max(bound, cost);
  }
  return bound;
}

bool Frontier::packed_tightly() const {
  return std::all_of(plans_.begin(), plans_.end(),
                     [](const Plan& plan) { return plan.arena == plan.live_peak; });
}

void Frontier::insert(Plan plan) {
  if (covers(plan.arena, plan.cost)) return;
  std::erase_if(plans_,
                [&](const Plan& p) { return p.arena >= plan.arena && p.cost >= plan.cost; });
  const auto place = std::upper_bound(plans_.begin(), plans_.end(), plan.arena,
                                      [](Bytes b, const Plan& p) { return b < p.arena; });
  plans_.insert(place, std::move(plan));
}

void Frontier::remember(const Plan& plan) {
  const auto place = std::lower_bound(
      by_live_.begin(), by_live_.end(), plan.live_peak,
      [](const Plan& known, Bytes live_peak) { return known.live_peak < live_peak; });
  if (place != by_live_.begin() && std::prev(place)->cost <= plan.cost) return;
  if (place != by_live_.end() && place->live_peak == plan.live_peak && place->cost <= plan.cost) {
    return;
  }
  const auto last = std::find_if(place, by_live_.end(),
                                 [&](const Plan& known) { return known.cost < plan.cost; });
  Plan copy = plan;
  copy.packing = {};
  by_live_.insert(by_live_.erase(place, last), std::move(copy));
}

bool Frontier::offer(Order order, std::string strategy) {
  PackingOptions screening = packing_;
  screening.search_nodes = std::min(packing_.search_nodes, kScreeningNodes);
  const Effort effort{screening, {}};
  if (freedom_ == OrderFreedom::kFixed && !is_fixed_order(*problem_, order)) return false;
  if (!algorithms_) return offer_with({}, order, strategy, effort);
  const OrderAlgorithms algorithms(*problem_, order);
  bool taken = false;
  const auto offer_level = [&](const OrderAlgorithms::Level& level) {
    if (covers(level.live_peak, level.cost)) return;
    taken = offer_with(algorithms.within(level.live_peak), order, strategy, effort) || taken;
  };
  for (const OrderAlgorithms::Level& level : algorithms.levels(kMostLevels)) offer_level(level);
  if (aim_ >= algorithms.least()) {
    taken = offer_with(algorithms.within(aim_), order, strategy, effort) || taken;
  }
  return taken;
}

bool Frontier::offer_within(Bytes budget, const Order& order, const std::string& strategy,
                            std::int64_t nodes, const std::function<bool()>& stop) {
  if (freedom_ == OrderFreedom::kFixed && !is_fixed_order(*problem_, order)) return false;
  Effort effort{packing_, stop};
  effort.packing.search_nodes = nodes;
  effort.packing.enough = budget;
  if (!algorithms_) return offer_with({}, order, strategy, effort);
  const OrderAlgorithms algorithms(*problem_, order);
  return budget >= algorithms.least() &&
         offer_with(algorithms.within(budget), order, strategy, effort);
}

bool Frontier::offer_with(schedule::Choices choices, const Order& order,
                          const std::string& strategy, const Effort& effort) {
  const schedule::Trace trace = trace_valid(*problem_, order, choices);
  Plan plan = describe(*problem_, order, strategy, trace);
  plan.choices = std::move(choices);
  if (covers(plan.live_peak, plan.cost)) return false;
  if (measure_ == Measure::kLivePeak) {
    plan.arena = plan.live_peak;
    insert(std::move(plan));
    return true;
  }
  pack_into(plan, trace, effort.packing, effort.stop);
  if (!plan.packing.too_large_to_search) remember(plan);
  if (covers(plan.arena, plan.cost)) return false;
  insert(std::move(plan));
  return true;
}

Packing Frontier::repack(const Plan& plan, std::int64_t effort, Bytes enough,
                         const std::function<bool()>& stop) const {
  const schedule::Trace trace = trace_valid(*problem_, plan.order, plan.choices);
  PackingOptions options = packing_;
  const auto buffers = static_cast<std::int64_t>(trace.buffers.size());
  options.search_nodes =
      std::max(packing_.search_nodes, std::min(packing_.search_nodes * effort, buffers * buffers));
  options.enough = enough;
  return pack(trace.buffers.items(), options, stop);
}

void Frontier::polish(const std::function<bool()>& stop) {
  if (measure_ == Measure::kLivePeak || packing_.search_nodes <= kScreeningNodes) return;
  std::vector<Plan> plans = std::move(plans_);
  plans_.clear();
  for (Plan& plan : plans) {
    if (plan.arena > plan.live_peak && !plan.packing.too_large_to_search) {
      take_if_smaller(
          plan, pack(trace_valid(*problem_, plan.order, plan.choices).buffers.items(), packing_));
    }
    insert(std::move(plan));
  }
  // The floor: the smallest live peak.
  if (by_live_.empty() || by_live_.front().live_peak >= plans_.front().arena) return;
  Plan smallest = by_live_.front();
  smallest.packing = repack(smallest, kFinalEffort, 0, stop);
  smallest.arena = smallest.packing.arena;
  insert(std::move(smallest));
  // A plan packed for the floor may take less: then that is the floor.
  while (true) {
    std::optional<Plan> packed = pack_within(plans_.front().arena, stop);
    if (!packed || packed->arena >= plans_.front().arena) return;
    insert(std::move(*packed));
  }
}

std::optional<Plan> Frontier::pack_within(Bytes budget, const std::function<bool()>& stop) const {
  const Plan* fits = cheapest_within(budget);
  if (fits == nullptr) return std::nullopt;
  Plan result = *fits;
  if (measure_ == Measure::kLivePeak || packing_.search_nodes <= kScreeningNodes) return result;
  const auto first = std::partition_point(
      by_live_.begin(), by_live_.end(), [&](const Plan& plan) { return plan.cost >= fits->cost; });
  const auto last = std::partition_point(
      first, by_live_.end(), [&](const Plan& plan) { return plan.live_peak <= budget; });
  for (auto miss = first + std::min(kMisses, last - first); miss != first;) {
    --miss;
    Packing packing = repack(*miss, kMissEffort, budget, stop);
    if (packing.arena > budget) continue;
    result = *miss;
    result.arena = packing.arena;
    result.packing = std::move(packing);
    break;
  }
  if (result.arena > result.live_peak && !result.packing.too_large_to_search) {
    take_if_smaller(result, repack(result, kFinalEffort, 0, stop));
  }
  return result;
}

Infeasible explain_floor(const Problem& problem, const Plan& smallest) {
  Infeasible result;
  result.floor = smallest.arena;
  const schedule::Trace trace = trace_valid(problem, smallest.order, smallest.choices);
  const std::int64_t step = schedule::profile_memory(trace).peak_step;
  if (trace.steps.empty()) {
    result.bound_by = "the tensors there before the first op";
  } else {
    result.bound_by = problem.ops[trace.steps[static_cast<std::size_t>(step)].op].name;
  }
  base::IdVector<schedule::BufferId, schedule::TensorId> holder(trace.buffers.size());
  for (const schedule::Copy& copy : trace.copies) {
    if (copy.made <= step) holder[copy.buffer] = copy.tensor;
  }
  for (std::size_t i = 0; i < trace.buffers.size(); ++i) {
    const schedule::Buffer& buffer = trace.buffers[schedule::BufferId(i)];
    if (buffer.start > step || buffer.end <= step || buffer.bytes == 0) continue;
    const schedule::TensorId tensor = holder[schedule::BufferId(i)];
    result.largest.push_back(
        {tensor.valid() ? problem.tensors[tensor].name : "workspace of " + result.bound_by,
         buffer.bytes});
  }
  std::stable_sort(result.largest.begin(), result.largest.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (result.largest.size() > 5) result.largest.resize(5);
  return result;
}

}  // namespace reprise::planner
