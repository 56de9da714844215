#pragma once

// Strategies: from a problem and a budget to an order of execution. One strategy a file, one
// interface. Pure and deterministic: same request, same plan; no clock, environment or device.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "planner/offsets.h"
#include "schedule/problem.h"
#include "schedule/simulate.h"

namespace reprise::planner {

using schedule::Order;
using schedule::Problem;

struct Plan {
  std::string strategy;  // what made it, e.g. "segments(6)"
  Order order;
  schedule::Choices choices{};  // the algorithm of each op; empty where no op has several
  std::int64_t cost = 0;        // sum of op costs over the order
  Bytes live_peak = 0;          // largest live sum
  Bytes arena = 0;              // after packing; the live peak under Measure::kLivePeak
  Packing packing;  // offsets of trace_order(problem, order, choices).trace.buffers; empty when not
                    // packed
  std::int64_t recomputed = 0;  // runs beyond the first of each op
  // No order within the budget of the request is cheaper: proven. As much as `cost`: optimal.
  std::int64_t cost_lower_bound = 0;
};

// Nothing this strategy knows fits.
struct Infeasible {
  Bytes floor = 0;         // the smallest budget this strategy can plan for
  Bytes proven_floor = 0;  // no order at all needs less; as much as `floor`: proven the smallest
  std::string bound_by;    // the op whose inputs, outputs and workspace bind at the floor
  struct Holder {
    std::string tensor;
    Bytes bytes = 0;
  };
  std::vector<Holder> largest;  // the largest buffers live there, at most 5, largest first
};

using Outcome = std::variant<Plan, Infeasible>;

// What was worked out for one problem already, so that several questions about it (a plan, the
// floor, what keep_all takes) cost one search. Give the same one to every Request of a problem and
// none to those of another.
class PlanCache;
[[nodiscard]] std::shared_ptr<PlanCache> make_plan_cache();

// What an order may change. Fixed: every op runs at least once, and first runs come in program
// order (streams and collectives of another trainer may need that). Free: any order the data
// allows.
enum class OrderFreedom : std::uint8_t { kFree, kFixed };

// What must fit the budget: the packed arena, or only the largest sum of live bytes, for users who
// bring an allocator of their own.
enum class Measure : std::uint8_t { kArena, kLivePeak };

struct Request {
  const Problem* problem = nullptr;
  Bytes budget = 0;  // bytes of what `measure` says
  Measure measure = Measure::kArena;
  std::uint64_t seed = 0;
  OrderFreedom order = OrderFreedom::kFree;
  int segments = 0;  // `segments` only: how many; 0 lets it choose
  PackingOptions packing{};
  // Effort of local search: moves tried per op and level of memory. Never a clock.
  std::int64_t search_moves = 100;
  // Asked now and then by long searches; true ends them with the best plans so far. The caller owns
  // the clock. Without it a plan is a matter of the request alone; with it also of when it stops,
  // and all effort goes into the one budget instead of a whole frontier.
  std::function<bool()> stop{};
  int threads = 1;                     // searches side by side; the plan does not depend on it
  std::shared_ptr<PlanCache> cache{};  // optional
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::string_view summary() const = 0;  // one line for --help
  // The cheapest plan it knows that fits; more budget never costs more. Throws Error(kInput) for a
  // budget that is not positive and for a problem that validate() refuses.
  [[nodiscard]] virtual Outcome plan(const Request& request) const = 0;
  // The smallest budget for which plan() returns a plan. Plans at it, to the byte.
  [[nodiscard]] virtual Bytes floor(const Request& request) const = 0;
};

// All strategies, by name: keep_all, segments, sqrt_n, auto, ... Throws Error(kInput) listing the
// names.
[[nodiscard]] const Strategy& find_strategy(std::string_view name);
[[nodiscard]] std::vector<const Strategy*> all_strategies();

// A proven lower bound on the cost of any order, whatever the budget: the ops that must run.
[[nodiscard]] std::int64_t cost_lower_bound(const Problem& problem,
                                            OrderFreedom freedom = OrderFreedom::kFree);

// trace_order + profile + pack, as a Plan with the fastest algorithms. The order must be an
// execution of the problem (CHECKed).
[[nodiscard]] Plan evaluate(const Problem& problem, Order order, std::string strategy,
                            const PackingOptions& packing);

}  // namespace reprise::planner
