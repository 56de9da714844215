#pragma once

// Strategies: from a problem and a budget to an order of execution. One strategy a file, one
// interface. Pure and deterministic: same request, same plan; no clock, environment or device.

#include <cstdint>
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
  std::int64_t cost = 0;        // sum of op costs over the order
  Bytes live_peak = 0;          // largest live sum
  Bytes arena = 0;              // after packing: what must fit the budget
  Packing packing;              // offsets of trace_order(problem, order).trace.buffers
  std::int64_t recomputed = 0;  // runs beyond the first of each op
};

// Nothing this strategy knows fits.
struct Infeasible {
  Bytes floor = 0;       // the smallest budget this strategy can plan for
  std::string bound_by;  // the op whose inputs, outputs and workspace bind at the floor
  struct Holder {
    std::string tensor;
    Bytes bytes = 0;
  };
  std::vector<Holder> largest;  // the largest buffers live there, at most 5, largest first
};

using Outcome = std::variant<Plan, Infeasible>;

struct Request {
  const Problem* problem = nullptr;
  Bytes budget = 0;  // bytes of the arena
  std::uint64_t seed = 0;
  int segments = 0;  // `segments` only: how many; 0 lets it choose
  PackingOptions packing{};
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::string_view summary() const = 0;  // one line for --help
  [[nodiscard]] virtual Outcome plan(const Request& request) const = 0;
  // The smallest budget for which plan() returns a plan. Plans at it, to the byte.
  [[nodiscard]] virtual Bytes floor(const Request& request) const = 0;
};

// All strategies, by name: keep_all, segments, sqrt_n, auto, ... Throws Error(kInput) listing the
// names.
[[nodiscard]] const Strategy& find_strategy(std::string_view name);
[[nodiscard]] std::vector<const Strategy*> all_strategies();

// trace_order + profile + pack, as a Plan. The order must be an execution of the problem (CHECKed).
[[nodiscard]] Plan evaluate(const Problem& problem, Order order, std::string strategy,
                            const PackingOptions& packing);

}  // namespace reprise::planner
