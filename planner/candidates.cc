#include "planner/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fmt/format.h"

namespace reprise::planner {
namespace {

// Up to this many ops the choice is fine, above it coarse.
constexpr Index kSmallProblem = 3000;
// Segments: every number up to here, above it steps of a quarter.
constexpr Index kEveryNumberUpTo = 16;
constexpr Index kMostStretches = 1024;  // of revolve

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

Bytes bytes_made(const Structure& structure, Index op) {
  Bytes bytes = 0;
  for (TensorId t : structure.op(op).outputs) bytes += structure.problem().tensors[t].bytes;
  return bytes;
}

// An order longer than this is worth nothing: it would run each op twenty times.
std::int64_t step_limit(const Structure& structure) {
  return std::int64_t{20} * structure.ops() + 1000;
}

void offer_decision(const Structure& structure, const Decision& decision, std::string label,
                    Frontier& frontier) {
  if (auto order = make_order(structure, decision, step_limit(structure))) {
    frontier.offer(*std::move(order), std::move(label));
  }
}

// Tensors in the order in which they are dropped: first those that cost least for their bytes.
std::vector<Index> by_cost_per_byte(const Structure& structure) {
  std::vector<Index> tensors;
  for (Index t = 0; t < structure.tensors(); ++t) {
    if (structure.droppable(t) && structure.read_after_turn(t) &&
        structure.producer(t) < structure.turn() && structure.tensor(t).bytes > 0) {
      tensors.push_back(t);
    }
  }
  const auto price = [&](Index t) {
    return static_cast<double>(structure.op(structure.producer(t)).cost) /
           static_cast<double>(structure.tensor(t).bytes);
  };
  std::stable_sort(tensors.begin(), tensors.end(),
                   [&](Index a, Index b) { return price(a) < price(b); });
  return tensors;
}

// The first `share` (by bytes) of them is made again when needed.
std::vector<Hold> drop_cheapest(const Structure& structure, const std::vector<Index>& tensors,
                                double share, Hold hold) {
  std::vector<Hold> result = keep_everything(structure).hold;
  double total = 0, dropped = 0;
  for (Index t : tensors) total += static_cast<double>(structure.tensor(t).bytes);
  for (Index t : tensors) {
    if (dropped >= share * total) break;
    result[at(t)] = hold;
    dropped += static_cast<double>(structure.tensor(t).bytes);
  }
  return result;
}

// 1, 2, 3, 4, 5, 6, 8, 9, 12, ... up to `most`: steps of about `ratio`.
std::vector<Index> ladder(Index most, double ratio) {
  std::vector<Index> values;
  double next = 1;
  while (next <= most) {
    const auto value = static_cast<Index>(next);
    if (values.empty() || value > values.back()) values.push_back(value);
    next = std::max(next * ratio, static_cast<double>(value) + 1);
  }
  return values;
}

}  // namespace

std::vector<Bytes> crossing_bytes(const Structure& structure) {
  std::vector<Bytes> change(at(structure.turn()) + 2, 0);
  for (Index t = 0; t < structure.tensors(); ++t) {
    const Index producer = structure.producer(t);
    if (producer < 0 || producer >= structure.turn()) continue;
    change[at(producer) + 1] += structure.tensor(t).bytes;
    change[at(structure.last_forward_use(t)) + 1] -= structure.tensor(t).bytes;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  return change;
}

std::vector<Index> cut_evenly(const Structure& structure, Index k) {
  const Index forward = structure.turn();
  std::vector<double> made(at(forward) + 1, 0);
  for (Index i = 0; i < forward; ++i) {
    made[at(i) + 1] = made[at(i)] + static_cast<double>(bytes_made(structure, i));
  }
  const std::vector<Bytes> crossing = crossing_bytes(structure);
  const double share = made[at(forward)] / k;
  std::vector<Index> segments = {0};
  for (Index c = 1; c < k; ++c) {
    const double ideal = share * c, reach = share / 4;
    Index first = static_cast<Index>(std::lower_bound(made.begin(), made.end(), ideal - reach) -
                                     made.begin());
    first = std::max(first, segments.back() + 1);
    Index best = -1;
    for (Index i = first; i < forward && (best < 0 || made[at(i)] <= ideal + reach); ++i) {
      const auto rank = [&](Index cut) {
        return std::pair(crossing[at(cut)], std::abs(made[at(cut)] - ideal));
      };
      if (best < 0 || rank(i) < rank(best)) best = i;
    }
    if (best < 0) break;
    segments.push_back(best);
  }
  return segments;
}

Index most_segments(const Structure& structure) {
  return std::max<Index>(structure.turn(), 1);
}

void offer_segments(const Structure& structure, Index k, Frontier& frontier) {
  Decision decision = keep_everything(structure);
  decision.segments = cut_evenly(structure, k);
  decision.slots = k;
  offer_decision(structure, decision, fmt::format("segments({})", k), frontier);
}

void offer_segments_of_any_number(const Structure& structure, Frontier& frontier) {
  const Index most = std::min<Index>(most_segments(structure), 1000);
  for (Index k = 1; k <= most; k += std::max<Index>(1, k < kEveryNumberUpTo ? 1 : k / 4)) {
    offer_segments(structure, k, frontier);
  }
}

void offer_sqrt_n(const Structure& structure, Frontier& frontier) {
  const auto k = static_cast<Index>(std::lround(std::sqrt(structure.turn())));
  offer_segments(structure, std::max<Index>(k, 1), frontier);
}

void offer_revolve(const Structure& structure, const std::function<bool()>& stop,
                   Frontier& frontier) {
  Decision decision = keep_everything(structure);
  for (Index n = 2; n <= std::min<Index>(most_segments(structure), kMostStretches); n *= 2) {
    decision.segments = cut_evenly(structure, n);
    for (Index slots = 1; slots < n; slots *= 2) {
      if (stop && stop()) return;
      decision.slots = slots;
      offer_decision(structure, decision, fmt::format("revolve({}, {})", n, slots), frontier);
    }
  }
}

void offer_all(const Structure& structure, Frontier& frontier) {
  const bool small = structure.ops() <= kSmallProblem;
  const std::vector<Index> tensors = by_cost_per_byte(structure);
  const std::vector<double> shares =
      small ? std::vector<double>{0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1}
            : std::vector<double>{0, 0.5, 1};
  const Index most = std::min<Index>(most_segments(structure), small ? 200 : 1000);
  std::vector<std::pair<Index, std::vector<Index>>> cuts;
  for (Index k : ladder(most, small ? 1.3 : 2.0)) cuts.emplace_back(k, cut_evenly(structure, k));
  for (double share : shares) {
    for (Hold hold : {Hold::kOnce, Hold::kTransient}) {
      if (hold == Hold::kTransient && (share == 0 || !small)) continue;
      Decision decision;
      decision.hold = drop_cheapest(structure, tensors, share, hold);
      for (const auto& [k, segments] : cuts) {
        decision.segments = segments;
        for (Index slots = k; slots >= 1; slots /= small ? 2 : 4) {
          decision.slots = slots;
          std::string label = fmt::format("segments({})", k);
          if (slots < k) label += fmt::format(", {} held at a time", slots);
          if (share > 0) label += fmt::format(", cheapest {:.0f}% dropped", share * 100);
          offer_decision(structure, decision, std::move(label), frontier);
        }
      }
    }
  }
}

}  // namespace reprise::planner
