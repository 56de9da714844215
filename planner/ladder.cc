#include "planner/ladder.h"

#include <algorithm>
#include <cmath>
#include <future>

#include "fmt/format.h"

#include "planner/annealer.h"

namespace reprise::planner {
namespace {

// Levels of memory, between these by the number of ops: small graphs have few plans to tell apart.
constexpr Index kFewestLevels = 20, kMostLevels = 60, kOpsPerLevel = 4;
constexpr double kStartTemperature = 1e-2, kEndTemperature = 1e-5;
constexpr double kPolishTemperature = 1e-3;
// Weight of memory where the target is met in the end, and where the smallest peak is the goal.
constexpr double kMemoryWeight = 2, kFloorWeight = 30;

class Ladder {
 public:
  Ladder(const Structure& structure, const Request& request, Frontier& frontier)
      : structure_(structure),
        request_(request),
        frontier_(frontier),
        levels_(std::clamp(structure.ops() / kOpsPerLevel, kFewestLevels, kMostLevels)),
        // Large problems get fewer moves per op.
        moves_(request.search_moves *
               std::min(std::max(structure.ops(), std::min(2 * structure.ops(), 200)), 400)) {}

  void run() {
    const Plan top = frontier_.plans().back();
    const Bytes lowest = search_floor();
    schedule::Order start = top.order;
    for (Index level = 1; level < levels_; ++level) {
      const Bytes target = lowest + (top.live_peak - lowest) / levels_ * (levels_ - level);
      start = search(start, target);
    }
    search(start, lowest);
    take_polished();
  }

 private:
  // A target that nothing meets: the smallest peak wins.
  Bytes search_floor() {
    const Plan smallest = frontier_.plans().front();
    AnnealOptions options = options_for(1, 2 * moves_);
    options.memory_weight = kFloorWeight;
    const AnnealResult found = anneal(structure_, smallest.order, options);
    frontier_.offer(found.order, "search");
    return std::min(found.live_peak, smallest.live_peak);
  }

  AnnealOptions options_for(Bytes target, std::int64_t moves) {
    AnnealOptions options;
    options.target = target;
    options.moves = moves;
    options.start_temperature = kStartTemperature;
    options.end_temperature = kEndTemperature;
    options.memory_weight = kMemoryWeight;
    options.seed = request_.seed * 1000 + static_cast<std::uint64_t>(runs_++);
    return options;
  }

  // From a cheaper order that is too large; where that ends above the target, from the best known
  // one that is not.
  schedule::Order search(const schedule::Order& start, Bytes target) {
    AnnealResult found = anneal(structure_, start, options_for(target, moves_));
    take_polished();
    const Plan* known = frontier_.cheapest_within(target);
    if (found.live_peak > target && known != nullptr) {
      found = anneal(structure_, known->order, options_for(target, moves_));
    } else if (known != nullptr && known->cost < found.cost) {
      polish(known->order, target);
    }
    offer(found, target);
    return found.order;
  }

  // A plan of another strategy that the way down has not come up to, in small steps, while the way
  // goes on: what is found is taken up at a fixed place, so threads do not change the plans.
  void polish(schedule::Order order, Bytes target) {
    AnnealOptions options = options_for(target, moves_);
    options.start_temperature = kPolishTemperature;
    polished_ = std::async(request_.threads > 1 ? std::launch::async : std::launch::deferred,
                           [this, order = std::move(order), options] {
                             return anneal(structure_, order, options).order;
                           });
  }

  void take_polished() {
    if (polished_.valid()) frontier_.offer(polished_.get(), "search");
  }

  // Holes in the arena: once more, for as much less as was too much.
  void offer(const AnnealResult& found, Bytes target) {
    frontier_.offer(found.order, "search");
    if (found.live_peak > target || frontier_.covers(target, found.cost)) return;
    const Plan* packed = frontier_.cheapest_within(found.live_peak + (target / 4));
    if (packed == nullptr || packed->arena <= target) return;
    const Bytes less = target - (packed->arena - target);
    const AnnealResult again = anneal(structure_, found.order, options_for(less, moves_ / 2));
    frontier_.offer(again.order, "search");
  }

  const Structure& structure_;
  const Request& request_;
  Frontier& frontier_;
  const Index levels_;
  const std::int64_t moves_;
  int runs_ = 0;
  std::future<schedule::Order> polished_;
};

}  // namespace

void offer_searched(const Structure& structure, const Request& request, Frontier& frontier) {
  if (structure.turn() == 0 || request.search_moves <= 0) return;
  Ladder(structure, request, frontier).run();
}

}  // namespace reprise::planner
