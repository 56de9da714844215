#include "planner/focus.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "planner/annealer.h"

// The arena is what must fit, but searches see live bytes only. When a round ends with an order
// whose live bytes fit and whose arena does not, packing gets about as much time as the searches of
// the round; where that does not help, the next round aims lower by most of what was too much. When
// it does fit, the aim rises again halfway to the budget.

namespace reprise::planner {
namespace {

constexpr int kLanes = 4;  // searches of a round, whatever the number of threads
constexpr std::int64_t kFirstMoves = 40'000;
constexpr double kWarm = 5e-3, kHot = 2e-2, kCold = 2e-6;  // temperatures
constexpr double kFloorWeight = 30;
constexpr std::int64_t kMostNodes = 1'000'000;  // of packing the best order of a round

// Request::stop is asked by one thread at a time, and not again once it has said yes.
class Stop {
 public:
  explicit Stop(const std::function<bool()>& ask) : ask_(ask) {}
  bool operator()() {
    if (stopped_) return true;
    const std::lock_guard lock(mutex_);
    if (!stopped_ && ask_()) stopped_ = true;
    return stopped_;
  }

 private:
  const std::function<bool()>& ask_;
  std::mutex mutex_;
  std::atomic<bool> stopped_ = false;
};

class Focus {
 public:
  Focus(const Structure& structure, const Request& request, Frontier& frontier)
      : structure_(structure),
        request_(request),
        frontier_(frontier),
        stop_(request.stop),
        target_(request.budget) {
    const Plan& cheapest = frontier.plans().back();
    best_ = {cheapest.order, cheapest.live_peak, cheapest.cost};
    fresh_ = best_;
    if (const Plan* fitting = frontier.cheapest_within(request.budget)) {
      best_ = {fitting->order, fitting->live_peak, fitting->cost};
    }
  }

  void run() {
    for (std::int64_t moves = kFirstMoves; !stop_() && !done(); moves *= 2) {
      for (const AnnealResult& found : run_lanes(moves)) {
        frontier_.offer(found.order, "search");
        if (better(found, best_)) best_ = found;
      }
      pack_best(moves);
      aim();
      ++round_;
    }
  }

 private:
  bool done() const {
    const Plan* plan = frontier_.cheapest_within(request_.budget);
    return plan != nullptr && plan->cost <= frontier_.cost_bound(request_.budget);
  }

  // Which of two serves the target better?
  bool better(const AnnealResult& a, const AnnealResult& b) const {
    const bool a_fits = a.live_peak <= target_, b_fits = b.live_peak <= target_;
    if (a_fits != b_fits) return a_fits;
    return a_fits ? std::pair(a.cost, a.live_peak) < std::pair(b.cost, b.live_peak)
                  : std::pair(a.live_peak, a.cost) < std::pair(b.live_peak, b.cost);
  }

  void pack_best(std::int64_t nodes) {
    if (best_.live_peak > target_ || frontier_.covers(request_.budget, best_.cost)) return;
    frontier_.offer_within(request_.budget, best_.order, "search", std::min(nodes, kMostNodes),
                           [this] { return stop_(); });
  }

  void aim() {
    if (best_.live_peak > target_) return;
    if (frontier_.covers(request_.budget, best_.cost)) {
      target_ += (request_.budget - target_) / 2;
      return;
    }
    const Plan* packed = frontier_.smallest_of_cost(best_.cost);
    const Bytes over = packed == nullptr ? request_.budget / 50 : packed->arena - request_.budget;
    target_ -= std::max<Bytes>(over - over / 4, 1);
    if (const Plan* fitting = frontier_.cheapest_within(request_.budget)) {
      best_ = {fitting->order, fitting->live_peak, fitting->cost};
    }
  }

  AnnealOptions options_for(int lane, std::int64_t moves) {
    AnnealOptions options;
    options.target = std::max<Bytes>(target_, 1);
    options.moves = moves;
    options.start_temperature = lane % 2 == 0 ? kHot : kWarm;
    options.end_temperature = kCold;
    // As long as nothing fits every other search looks for the smallest peak there is.
    if (best_.live_peak > target_ && lane % 2 == 1) options.memory_weight = kFloorWeight;
    options.seed = request_.seed * 1'000'003 + static_cast<std::uint64_t>(round_ * kLanes + lane);
    options.stop = [this] { return stop_(); };
    return options;
  }

  std::vector<AnnealResult> run_lanes(std::int64_t moves) {
    std::vector<AnnealResult> found(kLanes);
    std::atomic<int> next = 0;
    const auto work = [&] {
      for (int lane = next++; lane < kLanes; lane = next++) {
        // Half of them anew, half from the best.
        const AnnealResult& start = lane % 4 == 0 ? fresh_ : best_;
        found[static_cast<std::size_t>(lane)] =
            anneal(structure_, start.order, options_for(lane, moves));
      }
    };
    std::vector<std::jthread> others;
    for (int i = 1; i < std::min(request_.threads, kLanes); ++i) others.emplace_back(work);
    work();
    others.clear();
    return found;
  }

  const Structure& structure_;
  const Request& request_;
  Frontier& frontier_;
  Stop stop_;
  Bytes target_;
  AnnealResult best_, fresh_;
  int round_ = 0;
};

}  // namespace

void offer_focused(const Structure& structure, const Request& request, Frontier& frontier) {
  if (structure.turn() > 0) Focus(structure, request, frontier).run();
}

}  // namespace reprise::planner
