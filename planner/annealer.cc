#include "planner/annealer.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "planner/algorithms.h"
#include "planner/moves.h"

namespace reprise::planner {
namespace {

class Annealer {
 public:
  Annealer(const Structure& structure, const schedule::Order& start, const AnnealOptions& options)
      : structure_(structure),
        options_(options),
        algorithms_(offers_algorithms(structure.problem())),
        random_(options.seed) {
    best_.order = start;
    for (Index t = 0; t < structure.tensors(); ++t) {
      // What is there from the start can hardly be changed: weigh the excess against the rest.
      if (structure.producer(t) < 0) outside_ += structure.tensor(t).bytes;
    }
  }

  AnnealResult run() {
    start_from_best();
    best_.live_peak = sequence_->peak();
    best_.cost = sequence_->cost();
    double score = score_of(best_.live_peak, best_.cost);
    const double cooling = std::log(options_.end_temperature / options_.start_temperature);
    double temperature = options_.start_temperature;
    for (std::int64_t move = 0; move < options_.moves; ++move) {
      if (move % 64 == 0) {
        temperature = options_.start_temperature * std::exp(cooling * static_cast<double>(move) /
                                                            static_cast<double>(options_.moves));
        if (move % 512 == 0 && options_.stop && options_.stop()) break;
      }
      // What the move may come to is drawn first, so that too dear ones need not be tried out.
      const double most = score - temperature * std::log(std::max(random_.unit(), 1e-18));
      if (!moves_->propose(std::exp(most) * kRounding)) {
        moves_->take_back();
        continue;
      }
      const double next = score_of(sequence_->peak(), sequence_->cost());
      if (!sequence_->valid() || next > most) {
        moves_->take_back();
        continue;
      }
      moves_->accept();
      score = next;
      remember();
      make_room();
    }
    // Of the best order the best algorithms.
    if (algorithms_) {
      build(best_.order, best_.live_peak);
      best_.live_peak = sequence_->peak();
      best_.cost = sequence_->cost();
    }
    return best_;
  }

 private:
  double score_of(Bytes peak, std::int64_t cost) const {
    const auto weight = [&](Bytes bytes) {
      return std::log(static_cast<double>(std::max<Bytes>(bytes - outside_, 1)));
    };
    const double memory = weight(std::max(peak, options_.target)) - weight(options_.target);
    return std::log(static_cast<double>(std::max<std::int64_t>(cost, 1))) +
           options_.memory_weight * memory;
  }

  void remember() {
    const Bytes peak = sequence_->peak();
    const std::int64_t cost = sequence_->cost();
    const bool fits = peak <= options_.target, fitted = best_.live_peak <= options_.target;
    const bool better =
        fits
            ? !fitted || cost < best_.cost || (cost == best_.cost && peak < best_.live_peak)
            : !fitted && (peak < best_.live_peak || (peak == best_.live_peak && cost < best_.cost));
    if (!better) return;
    best_.live_peak = peak;
    best_.cost = cost;
    best_.order = sequence_->order();
  }

  // With the cheapest algorithms within the target; above it, within `peak`.
  void build(const schedule::Order& order, Bytes peak) {
    schedule::Choices choices;
    if (algorithms_) {
      choices =
          OrderAlgorithms(structure_.problem(), order).within(std::max(peak, options_.target));
    }
    sequence_.emplace(structure_, order, 7 * order.size() + 64, choices);
    moves_.emplace(structure_, *sequence_, random_, options_.target);
  }
  void start_from_best() { build(best_.order, 0); }

  // Gaps fill up over time: now and then the runs are spread evenly again.
  void make_room() {
    if (++accepted_ % kMovesBetweenSpreads == 0) build(sequence_->order(), sequence_->peak());
  }

  static constexpr double kRounding = 1 + 1e-9;
  static constexpr std::int64_t kMovesBetweenSpreads = 20'000;
  const Structure& structure_;
  const AnnealOptions options_;
  const bool algorithms_;  // are there any to choose among?
  Random random_;
  Bytes outside_ = 0;
  std::optional<LiveSequence> sequence_;
  std::optional<Moves> moves_;
  AnnealResult best_;
  std::int64_t accepted_ = 0;
};

}  // namespace

AnnealResult anneal(const Structure& structure, const schedule::Order& start,
                    const AnnealOptions& options) {
  return Annealer(structure, start, options).run();
}

}  // namespace reprise::planner
