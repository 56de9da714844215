#pragma once

// The strategies, one file each; the registry in strategy.cc lists them.

#include <functional>
#include <vector>

#include "planner/frontier.h"

namespace reprise::planner {

// A strategy whose plans do not depend on the budget: it works out all of them once, a budget
// chooses. That is what makes more budget never cost more.
class FrontierStrategy : public Strategy {
 public:
  [[nodiscard]] Outcome plan(const Request& request) const final;
  [[nodiscard]] Bytes floor(const Request& request) const final;

 protected:
  using Way = std::function<void(const Request&, Frontier&)>;

 private:
  // At least one plan.
  virtual void solve(const Request& request, Frontier& frontier) const = 0;
  // A step of several passes is put together from plans of passes, chosen before the whole is
  // packed; so what is best for each need not be the smallest together. What each of these ways
  // makes is put together as well.
  [[nodiscard]] virtual std::vector<Way> further_ways_for_passes() const { return {}; }
  [[nodiscard]] std::shared_ptr<const Frontier> frontier(const Request& request) const;
  void solve_whole_or_passes(const Request& request, Frontier& frontier) const;
  void offer_leanest(const Request& request, Frontier& frontier) const;
};

[[nodiscard]] const Strategy& keep_all_strategy();
[[nodiscard]] const Strategy& segments_strategy();
[[nodiscard]] const Strategy& sqrt_n_strategy();
[[nodiscard]] const Strategy& chain_strategy();
[[nodiscard]] const Strategy& revolve_strategy();
[[nodiscard]] const Strategy& rnn_strategy();
[[nodiscard]] const Strategy& dag_strategy();
[[nodiscard]] const Strategy& blocks_strategy();
[[nodiscard]] const Strategy& exact_strategy();
[[nodiscard]] const Strategy& auto_strategy();

}  // namespace reprise::planner
