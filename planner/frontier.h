#pragma once

// The best plans known for a problem: of two, neither is both smaller and cheaper than the other.

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "planner/strategy.h"

namespace reprise::planner {

class Frontier {
 public:
  explicit Frontier(const Request& request);

  // Takes the order in, unless what is known is at least as good, or the request fixes the order of
  // first runs and this one has another. False when it was not taken. Where ops have several
  // algorithms it is taken in with the best choices for each level of memory that tells them apart.
  bool offer(Order order, std::string strategy);
  // The same for one budget, packed with an effort of its own until the arena fits.
  bool offer_within(Bytes budget, const Order& order, const std::string& strategy,
                    std::int64_t nodes, const std::function<bool()>& stop);
  // Repeats the packing of plans with holes at full effort, that of the smallest as pack_within()
  // does.
  void polish(const std::function<bool()>& stop);

  [[nodiscard]] bool empty() const { return plans_.empty(); }
  [[nodiscard]] const std::vector<Plan>& plans() const { return plans_; }  // by rising arena
  // The cheapest plan whose arena fits; null when none does.
  [[nodiscard]] const Plan* cheapest_within(Bytes budget) const;
  // The same for the last word on a budget: the next cheaper orders whose live bytes fit are packed
  // with more effort, and so is what is handed out. More budget never costs more. Nothing when
  // cheapest_within() knows none.
  [[nodiscard]] std::optional<Plan> pack_within(Bytes budget,
                                                const std::function<bool()>& stop) const;
  // The plan of the smallest arena that costs no more; null when none does.
  [[nodiscard]] const Plan* smallest_of_cost(std::int64_t cost) const;
  // Is there a plan with at most this arena and this cost?
  [[nodiscard]] bool covers(Bytes arena, std::int64_t cost) const;

  // What a search has proven: no order whose live peak is within `budget` costs less than `cost`,
  // none at all has a live peak below `bytes`.
  void prove_cost(Bytes budget, std::int64_t cost) { proven_costs_.emplace_back(budget, cost); }
  void prove_floor(Bytes bytes) { proven_floor_ = std::max(proven_floor_, bytes); }
  // The largest bound on the cost that is proven for a budget.
  [[nodiscard]] std::int64_t cost_bound(Bytes budget) const;
  // Has every plan an arena as large as its live peak?
  [[nodiscard]] bool packed_tightly() const;
  [[nodiscard]] Bytes proven_floor() const { return proven_floor_; }

 private:
  // How much effort an offer gets, and when it ends.
  struct Effort {
    PackingOptions packing;
    std::function<bool()> stop;
  };
  bool offer_with(schedule::Choices choices, const Order& order, const std::string& strategy,
                  const Effort& effort);
  void insert(Plan plan);
  void remember(const Plan& plan);
  [[nodiscard]] Packing repack(const Plan& plan, std::int64_t effort, Bytes enough,
                               const std::function<bool()>& stop) const;

  const Problem* problem_;
  PackingOptions packing_;
  Measure measure_;
  OrderFreedom freedom_;
  bool algorithms_;            // are there any to choose among?
  Bytes aim_;                  // a level that choices are made for, besides others; 0: none
  std::vector<Plan> plans_;    // arena rising, cost falling
  std::vector<Plan> by_live_;  // live peak rising, cost falling; not packed
  std::vector<std::pair<Bytes, std::int64_t>> proven_costs_;
  Bytes proven_floor_ = 0;
};

// Why nothing below the arena of `smallest` can be planned.
[[nodiscard]] Infeasible explain_floor(const Problem& problem, const Plan& smallest);

}  // namespace reprise::planner
