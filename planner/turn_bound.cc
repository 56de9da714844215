#include "planner/turn_bound.h"

#include <algorithm>
#include <cmath>

#include "planner/longest_path.h"
#include "planner/min_cut.h"
#include "planner/passes.h"

namespace reprise::planner {
namespace {

using schedule::TensorKind;

constexpr std::int32_t kSource = 0, kSink = 1;
// Of what all ops cost together, so that sums of capacities stay far below MinCut::kUncuttable.
constexpr double kCapacityOfAll = 0x1p40;
constexpr Index kReach = 16, kReachOfLarge = 1, kSmallProblem = 20'000;
constexpr int kMostCuts = 40;        // for one anchor
constexpr double kPrecision = 1e-4;  // of the extra cost

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

// One price: the cut as a line over prices, and what its flow proves.
struct Cut {
  bool complete = false;
  double cost = 0;   // of what runs again
  double bytes = 0;  // held
  double flow = 0;   // in units of cost
};

class Turn {
 public:
  // Runs of ops [first, last) count.
  Turn(const Structure& structure, Index anchor, Index first, Index last)
      : s_(structure),
        anchor_(anchor),
        first_(first),
        last_(last),
        before_(at(s_.ops()), false),
        follows_(at(s_.ops()), false),
        free_(at(s_.tensors()), false) {
    find_sides();
    find_reads();
    measure_anchor();
  }

  // Bytes for what is held.
  [[nodiscard]] Bytes room(Bytes budget) const { return budget - taken_; }
  [[nodiscard]] double cost_of_all() const { return cost_of_all_; }
  [[nodiscard]] Bytes bytes_of_all() const { return bytes_of_all_; }

  [[nodiscard]] Cut cut_at(double price, std::int64_t& effort) const {
    const double scale = kCapacityOfAll / cost_of_all_;
    const auto capacity = [&](double cost) {
      return static_cast<std::int64_t>(std::floor(std::min(cost * scale, 2 * kCapacityOfAll)));
    };
    MinCut flow(2 + s_.tensors() + s_.ops());
    for (const Index u : sources_) flow.add_edge(kSource, read_node(u), MinCut::kUncuttable);
    for (const Index u : reads_) {
      const Index producer = s_.producer(u);
      flow.add_edge(read_node(u), producer < 0 ? kSink : later_node(producer),
                    s_.destroyer(u) == anchor_
                        ? MinCut::kUncuttable
                        : capacity(price * static_cast<double>(s_.tensor(u).bytes)));
    }
    for (const Index k : reruns_) {
      for (const TensorId id : s_.op(k).inputs) {
        const auto u = static_cast<Index>(id.index());
        if (is_read(u)) flow.add_edge(later_node(k), read_node(u), MinCut::kUncuttable);
      }
      if (!before_[at(k)]) continue;
      flow.add_edge(later_node(k), kSink,
                    s_.op(k).recomputable ? capacity(cost_of(k)) : MinCut::kUncuttable);
    }
    const std::int64_t granted = effort;
    const std::vector<bool> later = flow.source_side(kSource, kSink, granted);
    effort = flow.effort_left();
    Cut cut;
    cut.complete = effort >= 0;
    cut.flow = static_cast<double>(flow.flow()) / scale;
    for (const Index u : reads_) {
      const Index producer = s_.producer(u);
      const bool held = producer < 0 || !later[at(later_node(producer))];
      if (later[at(read_node(u))] && held) cut.bytes += static_cast<double>(s_.tensor(u).bytes);
    }
    for (const Index k : reruns_) {
      if (before_[at(k)] && later[at(later_node(k))]) cut.cost += cost_of(k);
    }
    return cut;
  }

 private:
  [[nodiscard]] Index read_node(Index u) const { return 2 + u; }
  [[nodiscard]] Index later_node(Index k) const { return 2 + s_.tensors() + k; }
  [[nodiscard]] bool is_read(Index u) const {
    const Index producer = s_.producer(u);
    return s_.tensor(u).kind != TensorKind::kResident && !free_[at(u)] &&
           (producer < 0 || !follows_[at(producer)]);
  }
  [[nodiscard]] double cost_of(Index k) const {
    return k >= first_ && k < last_ ? static_cast<double>(s_.op(k).cost) : 0;
  }

  // Ops before the anchor in every execution, and those that cannot be.
  void find_sides() {
    if (s_.freedom() == OrderFreedom::kFixed) {
      for (Index k = 0; k < s_.ops(); ++k) (k < anchor_ ? before_ : follows_)[at(k)] = k != anchor_;
      return;
    }
    std::vector<bool> wanted(at(s_.tensors()), false), made(at(s_.tensors()), false);
    for (Index k = anchor_; k >= 0; --k) {
      const auto& outputs = s_.op(k).outputs;
      before_[at(k)] = std::any_of(outputs.begin(), outputs.end(),
                                   [&](TensorId t) { return wanted[t.index()]; });
      if (!before_[at(k)] && k != anchor_) continue;
      for (const TensorId t : s_.op(k).inputs) wanted[t.index()] = true;
    }
    for (Index k = anchor_; k < s_.ops(); ++k) {
      const auto& inputs = s_.op(k).inputs;
      const bool follows =
          std::any_of(inputs.begin(), inputs.end(), [&](TensorId t) { return made[t.index()]; });
      if (!follows && k != anchor_) continue;
      follows_[at(k)] = follows && s_.required(k);
      for (const TensorId t : s_.op(k).outputs) made[t.index()] = true;
    }
  }

  // What the anchor takes, beside what is held. Its operands are there, and so are outputs that
  // stay.
  void measure_anchor() {
    const schedule::Op& op = s_.op(anchor_);
    std::vector<bool> there = free_;  // and what it destroys
    for (const TensorId id : op.inputs) there[id.index()] = true;
    taken_ = op.least_workspace();
    for (Index u = 0; u < s_.tensors(); ++u) {
      if (there[at(u)] || s_.tensor(u).kind == TensorKind::kResident) taken_ += s_.tensor(u).bytes;
    }
    std::vector<bool> placed(op.outputs.size(), false);
    for (const graph::InplacePair& pair : op.inplace) {
      if (placed[at(pair.output)]) continue;
      placed[at(pair.output)] = true;
      taken_ -= s_.problem().tensors[op.outputs[at(pair.output)]].bytes;
    }
  }

  void find_reads() {
    for (const TensorId id : s_.op(anchor_).outputs) free_[id.index()] = true;
    for (const TensorId id : s_.op(anchor_).inputs) {
      free_[id.index()] = s_.destroyer(static_cast<Index>(id.index())) != anchor_;
    }
    for (Index k = 0; k < s_.ops(); ++k) {
      if (!before_[at(k)] || s_.op(k).recomputable) continue;
      for (const TensorId id : s_.op(k).outputs) {
        if (s_.problem().tensors[id].kind == TensorKind::kOutput) free_[id.index()] = true;
      }
    }
    std::vector<bool> seen(at(s_.tensors()), false), rerun(at(s_.ops()), false);
    std::vector<Index> open;
    const auto read = [&](TensorId id) {
      const auto u = static_cast<Index>(id.index());
      if (seen[at(u)] || !is_read(u)) return;
      seen[at(u)] = true;
      reads_.push_back(u);
      open.push_back(u);
    };
    for (Index k = 0; k < s_.ops(); ++k) {
      if (!follows_[at(k)]) continue;
      for (const TensorId id : s_.op(k).inputs) read(id);
    }
    sources_ = reads_;
    while (!open.empty()) {
      const Index producer = s_.producer(open.back());
      open.pop_back();
      if (producer < 0 || rerun[at(producer)]) continue;
      rerun[at(producer)] = true;
      reruns_.push_back(producer);
      for (const TensorId id : s_.op(producer).inputs) read(id);
    }
    for (const Index u : sources_) bytes_of_all_ += s_.tensor(u).bytes;
    for (const Index k : reruns_) cost_of_all_ += before_[at(k)] ? cost_of(k) : 0;
  }

  const Structure& s_;
  const Index anchor_, first_, last_;
  std::vector<bool> before_, follows_;  // per op: A and D
  std::vector<bool> free_;              // per tensor: there, whatever is held
  std::vector<Index> sources_;          // read by ops of D
  std::vector<Index> reads_, reruns_;   // those too, and what they may need in turn
  Bytes taken_ = 0, bytes_of_all_ = 0;
  double cost_of_all_ = 0;
};

// The best price lies where lines of two cuts meet: one that holds too much and one that does not.
double best_over_prices(const Turn& turn, Bytes room, std::int64_t& effort) {
  if (room < 0 || turn.bytes_of_all() <= room || turn.cost_of_all() <= 0) return 0;
  const auto limit = static_cast<double>(room);
  Cut less{true, 0, static_cast<double>(turn.bytes_of_all()), 0};  // at price 0
  Cut more;
  double best = 0;
  double price = turn.cost_of_all() / static_cast<double>(turn.bytes_of_all());
  bool bracketed = false;
  for (int i = 0; i < kMostCuts && effort > 0; ++i) {
    const Cut cut = turn.cut_at(price, effort);
    const double proven = cut.flow - price * limit;
    best = std::max(best, proven);
    if (!cut.complete) break;
    // What the two lines promise at this price is reached: no price does better.
    if (bracketed && less.cost + price * (less.bytes - limit) <= best * (1 + kPrecision)) break;
    (cut.bytes > limit ? less : more) = cut;
    bracketed = bracketed || cut.bytes <= limit;
    if (!bracketed) {
      price *= 4;
      continue;
    }
    if (less.bytes <= more.bytes) break;
    price = (more.cost - less.cost) / (less.bytes - more.bytes);
  }
  return best;
}

// The first backward op of a pass.
Index turn_of(const Structure& s, Index first, Index last) {
  for (Index k = first; k < last; ++k) {
    if (s.op(k).backward) return k;
  }
  return std::clamp(s.turn(), first, last);
}

// Positions on a path looked at, as far as this from the turn.
Index reach(const Structure& s) {
  return s.ops() <= kSmallProblem ? kReach : kReachOfLarge;
}

}  // namespace

std::int64_t turn_bound_at(const Structure& structure, Index anchor, Index first, Index last,
                           Bytes budget, std::int64_t& effort) {
  const Turn turn(structure, anchor, first, last);
  const double bound = best_over_prices(turn, turn.room(budget), effort);
  // Sums of doubles round; costs are whole numbers.
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(bound * (1 - 1e-9) - 1e-3)));
}

std::int64_t turn_bound(const Structure& structure, Bytes budget, std::int64_t effort) {
  const std::vector<std::size_t> borders = pass_borders(structure.problem());
  std::int64_t sum = 0;
  for (std::size_t p = 0; p + 1 < borders.size(); ++p) {
    const auto first = static_cast<Index>(borders[p]), last = static_cast<Index>(borders[p + 1]);
    const std::vector<Index> path = longest_path(structure, first, last);
    const auto turn = static_cast<Index>(
        std::lower_bound(path.begin(), path.end(), turn_of(structure, first, last)) - path.begin());
    const Index begin = std::max(turn - reach(structure), 0);
    const Index end = std::min(turn + reach(structure), static_cast<Index>(path.size()));
    std::int64_t best = 0;
    for (Index i = begin; i < end; ++i) {
      best = std::max(best, turn_bound_at(structure, path[at(i)], first, last, budget, effort));
    }
    sum += best;
  }
  return sum;
}

}  // namespace reprise::planner
