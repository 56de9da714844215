#include "planner/portfolio.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "planner/conflicts.h"
#include "planner/packing_levels.h"

namespace reprise::planner {
namespace {

// Above this many meeting pairs only the placements by time run: they need no table of conflicts.
constexpr std::int64_t kPairLimit = 4'000'000;
// Searches keep a table of the items of each section.
constexpr std::int64_t kMembershipLimit = 4'000'000;
constexpr std::int64_t kMostRounds = 50;  // of place_with_feedback
// Sizes from which items are packed by search, in parts of the lower bound; the first of them
// first.
constexpr Bytes kDetails[] = {1000, 300, 100};
constexpr std::int64_t kFirstSteps = 2'000'000;  // of a search; doubled whenever all have had a try
// Capacities to try, between the lower bound (0) and the best arena (1): first as much as may be
// had at once, then in small steps.
constexpr double kAims[] = {0.7, 0.35, 0.0}, kLaterAims[] = {0.95, 0.85, 0.6};

std::int64_t memberships(const PackItems& problem, Bytes smallest) {
  std::int64_t count = 0;
  for (const PackItem& item : problem.items) {
    if (item.aligned >= smallest) count += item.end - item.begin;
  }
  return count;
}

class Portfolio {
 public:
  Portfolio(const PackItems& problem, const PortfolioLimits& limits)
      : problem_(problem), limits_(limits), left_(limits.steps) {}

  Placement run() {
    best_ = place_by_time(problem_, false);
    if (!done()) offer(place_by_time(problem_, true));
    if (done()) return best_;
    const std::optional<Conflicts> conflicts = Conflicts::find(problem_.items, kPairLimit);
    best_.too_large_to_search = !conflicts;
    if (!conflicts) return best_;
    const auto orders = greedy_orders(problem_);
    for (const auto& order : orders) {
      if (!done()) offer(place_in_order(problem_, *conflicts, order));
    }
    if (done()) return best_;
    feed_back(*conflicts, orders[0]);
    if (!done() && left_ > 0) search(*conflicts);
    return best_;
  }

 private:
  bool done() const { return best_.arena <= std::max(limits_.enough, impossible_ + problem_.step); }
  bool spent() {
    stopped_ = stopped_ || (limits_.stop && limits_.stop());
    return stopped_ || left_ <= 0;
  }

  void offer(Placement placement) {
    if (placement.arena < best_.arena) best_ = std::move(placement);
  }

  void feed_back(const Conflicts& conflicts, const std::vector<std::int32_t>& order) {
    // A round looks at each pair twice and sorts; half of the effort is for searches.
    const std::int64_t steps = std::max<std::int64_t>(1, conflicts.pairs() * 16);
    const std::int64_t rounds = std::min(kMostRounds, left_ / 4 / steps);
    if (rounds == 0) return;
    offer(place_with_feedback(problem_, conflicts, order, static_cast<int>(rounds)));
    left_ -= rounds * steps;
  }

  void make_levels(const Conflicts& conflicts) {
    const auto add = [&](Bytes smallest) {
      if (memberships(problem_, smallest) > kMembershipLimit) return;
      auto level = std::make_unique<PackingLevel>(problem_, conflicts, smallest);
      const bool known = std::any_of(levels_.begin(), levels_.end(), [&](const auto& other) {
        return other->size() == level->size();
      });
      if (level->size() > 0 && !known) levels_.push_back(std::move(level));
    };
    for (const Bytes part : kDetails) add(problem_.lower_bound / part);
    add(0);
  }

  void search(const Conflicts& conflicts) {
    make_levels(conflicts);
    if (levels_.empty()) return;
    std::int64_t steps = std::min(kFirstSteps, std::max<std::int64_t>(1, left_ / 8));
    for (int variant = 0;; ++variant) {
      for (const auto& level : levels_) {
        for (const double aim : variant < PackingLevel::kVariants ? kAims : kLaterAims) {
          while (!done() && !spent() && attempt(*level, aim, variant, std::min(steps, left_))) {
          }
          if (done() || spent()) return;
        }
      }
      if (variant % PackingLevel::kVariants == PackingLevel::kVariants - 1) steps *= 2;
    }
  }

  // True when it led to a smaller arena.
  bool attempt(PackingLevel& level, double aim, int variant, std::int64_t steps) {
    const Bytes lowest = impossible_ + problem_.step;
    const Bytes range = best_.arena - problem_.step - lowest;
    const Bytes part = static_cast<Bytes>(aim * static_cast<double>(range));
    const Bytes capacity = lowest + part / problem_.step * problem_.step;
    const Bytes before = best_.arena;
    PackingLevel::Attempt result = level.pack_within(capacity, variant, steps, limits_.stop);
    left_ -= std::max<std::int64_t>(result.steps, 1000);
    if (result.placement) offer(*std::move(result.placement));
    if (level.complete() && result.exhausted) impossible_ = std::max(impossible_, capacity);
    return best_.arena < before;
  }

  const PackItems& problem_;
  const PortfolioLimits& limits_;
  std::int64_t left_;  // steps
  bool stopped_ = false;
  std::vector<std::unique_ptr<PackingLevel>> levels_;
  Bytes impossible_ = problem_.lower_bound - problem_.step;  // no arena of this size will do
  Placement best_;
};

}  // namespace

Placement pack_items(const PackItems& problem, const PortfolioLimits& limits) {
  return Portfolio(problem, limits).run();
}

}  // namespace reprise::planner
