// Repeated layers are planned once: the options of each distinct block are found exactly
// (blocks_options.h), one staircase combines them (blocks_staircase.h), and for each of twenty
// targets the fewest steps down it that really fit are taken. Blocks are the layers themselves, or
// groups of 2, 4, 8, ... of them, which keep less between layers and make more again at a time.

#include "planner/blocks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "fmt/format.h"

#include "planner/blocks_staircase.h"
#include "planner/strategies.h"

namespace reprise::planner {
namespace {

constexpr Index kTargets = 20;          // evenly from nothing to what program order takes
constexpr Index kSmallProblem = 3000;   // up to so many ops all groups are tried for each target
constexpr Index kLargeProblem = 30000;  // more ops than this take other decisions too long
constexpr Index kLargestBlock = 3000;   // ops of a group of blocks
constexpr int kTries = 4;               // orders traced for one target
constexpr double kHoleStep = 0.0005;    // left free for arenas with somewhat larger holes
constexpr double kSlack = 0.002;        // of a target that may stay unused

class BlockSearch {
 public:
  BlockSearch(const Structure& structure, const Request& request, Frontier& frontier)
      : s_(structure), request_(request), frontier_(frontier), blocks_(find_blocks(structure)) {
    all_ = peak_of(program_order(s_.problem(), s_.freedom()));
    Index longest = 1, in_run = 0, largest = 1;
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      in_run = k > 0 && blocks_[k].run == blocks_[k - 1].run ? in_run + 1 : 1;
      longest = std::max(longest, in_run);
      largest = std::max(largest, blocks_[k].last - blocks_[k].first);
    }
    for (Index group = 1; group <= longest && group * largest <= kLargestBlock; group *= 2) {
      groups_.push_back({group, Staircase(s_, blocks_, group)});
    }
  }

  void offer_targets() {
    for (Index k = kTargets - 1; k > 0; --k) aim_at(all_ / kTargets * k);
    // A caller with a clock has one budget in mind.
    if (request_.stop && request_.budget < all_) aim_at(request_.budget);
  }

  // As little kept as possible: whatever is expected of it, it may be small.
  void offer_smallest() {
    for (const Group& group : groups_) {
      const Index steps = group.stairs.steps();
      if (auto order =
              make_order(s_, group.stairs.decide(steps, group.stairs.blocks()), step_limit())) {
        const Bytes peak = peak_of(*order);
        offer(*std::move(order), group, steps, peak);
      }
    }
  }

  // Ever fewer borders held at a time, all else made again.
  void offer_deep() {
    if (groups_.empty()) return;
    const Staircase& stairs = groups_.front().stairs;
    for (Index slots = stairs.blocks() / 2; slots >= 1; slots /= 4) {
      auto order = make_order(s_, stairs.decide(stairs.steps(), slots), step_limit());
      if (!order) return;
      frontier_.offer(*std::move(order), fmt::format("blocks, {} held at a time", slots));
    }
  }

  bool large_and_repeated() const {
    if (s_.ops() <= kLargeProblem) return false;
    Index ops = 0;
    for (const Block& block : blocks_) ops += block.repeated ? block.last - block.first : 0;
    return ops * 4 >= s_.turn() * 3;
  }

 private:
  struct Group {
    Index blocks;
    Staircase stairs;
    Bytes other = 0;  // peak of the last order traced, less its activations
    bool traced = false;
  };

  std::int64_t step_limit() const { return std::int64_t{8} * s_.ops() + 1000; }

  Bytes peak_of(const Order& order) const {
    return schedule::profile_memory(schedule::trace_order(s_.problem(), order).trace).peak;
  }

  Bytes others(const Group& group) const {
    return group.traced ? group.other : all_ - group.stairs.activations(0);
  }

  void aim_at(Bytes target) {
    // Arenas have holes: the last plan taken tells how large they are about.
    const auto live = static_cast<Bytes>(static_cast<double>(target) / holes_);
    Group* best = nullptr;
    std::int64_t least = 0;
    for (Group& group : groups_) {
      const Index steps = group.stairs.steps_within(live - others(group));
      if (steps > group.stairs.steps()) continue;
      if (s_.ops() <= kSmallProblem) {
        offer_within(group, live);
      } else if (best == nullptr || group.stairs.extra(steps) < least) {
        best = &group;
        least = group.stairs.extra(steps);
      }
    }
    if (best != nullptr) offer_within(*best, live);
  }

  // The cheapest order of the group within the target. How much is live besides activations is
  // known only from orders traced: the number of steps is corrected until it fits closely.
  void offer_within(Group& group, Bytes target) {
    std::optional<Order> found;
    Index found_steps = 0;
    Bytes found_peak = 0;
    std::map<Index, bool> tried;
    for (int k = 0; k < kTries; ++k) {
      const Index steps = group.stairs.steps_within(target - others(group));
      if (steps > group.stairs.steps() || tried[steps]) break;
      tried[steps] = true;
      if (found && steps > found_steps) break;
      auto order = make_order(s_, group.stairs.decide(steps, group.stairs.blocks()), step_limit());
      if (!order) break;
      const Bytes peak = peak_of(*order);
      group.other = peak - group.stairs.activations(steps);
      group.traced = true;
      if (peak > target) continue;
      found = std::move(order);
      found_steps = steps;
      found_peak = peak;
      if (static_cast<double>(target - peak) <= kSlack * static_cast<double>(target)) break;
    }
    if (!found) return;
    offer(*std::move(found), group, found_steps, found_peak);
  }

  void offer(Order order, const Group& group, Index steps, Bytes peak) {
    std::int64_t cost = 0;
    for (OpId op : order) cost += s_.problem().ops[op].cost;
    if (!frontier_.offer(std::move(order),
                         fmt::format("blocks({}), {} steps", group.blocks, steps))) {
      return;
    }
    const Plan* plan = frontier_.smallest_of_cost(cost);
    if (plan == nullptr || plan->cost != cost || peak <= 0) return;
    holes_ = static_cast<double>(plan->arena) / static_cast<double>(peak);
    if (holes_ > 1) holes_ += kHoleStep;
  }

  const Structure& s_;
  const Request& request_;
  Frontier& frontier_;
  const std::vector<Block> blocks_;
  std::vector<Group> groups_;
  Bytes all_ = 0;     // peak of program order
  double holes_ = 1;  // arena of the last plan taken, as a multiple of its peak
};

class Blocks final : public FrontierStrategy {
 public:
  std::string_view name() const override { return "blocks"; }
  std::string_view summary() const override {
    return "repeated layers found by themselves, each kind planned once, exactly; for large graphs";
  }

 private:
  void solve(const Request& request, Frontier& frontier) const override {
    frontier.offer(program_order(*request.problem, request.order), "keep_all");
    offer_blocks(Structure(*request.problem, request.order), request, frontier);
  }
};

}  // namespace

bool offer_blocks(const Structure& structure, const Request& request, Frontier& frontier) {
  BlockSearch search(structure, request, frontier);
  search.offer_targets();
  search.offer_smallest();
  search.offer_deep();
  return search.large_and_repeated();
}

const Strategy& blocks_strategy() {
  static const Blocks strategy;
  return strategy;
}

}  // namespace reprise::planner
