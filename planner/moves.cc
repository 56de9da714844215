#include "planner/moves.h"

#include <algorithm>
#include <limits>

namespace reprise::planner {
namespace {

// More runs than this are never added by one move.
constexpr std::size_t kLongestChain = 24;
// Chains that one exchange puts in.
constexpr int kMostExchanged = 20;

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

Moves::Moves(const Structure& structure, LiveSequence& sequence, Random& random, Bytes target)
    : s_(structure), sequence_(sequence), random_(random), target_(target) {
  double sum = 0;
  for (Index t = 0; t < s_.tensors(); ++t) {
    if (s_.producer(t) < 0 || !s_.rerunnable(s_.producer(t)) || !s_.required(s_.producer(t)) ||
        s_.tensor(t).kind != schedule::TensorKind::kTemp || s_.tensor(t).bytes == 0 ||
        s_.readers(t).empty()) {
      continue;
    }
    sum += static_cast<double>(s_.tensor(t).bytes);
    droppable_.push_back(t);
  }
  share_out(sum / static_cast<double>(droppable_.size()));
  for (Index i = 0; i < s_.ops(); ++i) {
    if (s_.op(i).choices() > 1 && s_.required(i)) choosable_.push_back(i);
  }
}

void Moves::share_out(double mean) {
  std::vector<Index> small, large;
  const auto size = static_cast<Index>(droppable_.size());
  for (Index i = 0; i < size; ++i) {
    const auto bytes = static_cast<double>(s_.tensor(droppable_[at(i)]).bytes);
    shares_.push_back({bytes / mean, i});
    (bytes < mean ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    Share& giver = shares_[at(large.back())];
    Share& taker = shares_[at(small.back())];
    small.pop_back();
    taker.other = large.back();
    giver.own -= 1 - taker.own;
    if (giver.own >= 1) continue;
    small.push_back(large.back());
    large.pop_back();
  }
}

void Moves::add(Index op, Index position) {
  sequence_.add(op, position);
  changes_.push_back({Change::Kind::kAdded, op, position});
}

void Moves::remove(Index position) {
  changes_.push_back({Change::Kind::kRemoved, sequence_.op_at(position), position});
  sequence_.remove(position);
}

void Moves::choose(Index op, std::int32_t choice) {
  changes_.push_back({Change::Kind::kChose, op, sequence_.choice(op)});
  sequence_.choose(op, choice);
}

void Moves::take_back() {
  for (; !changes_.empty(); changes_.pop_back()) {
    const Change& change = changes_.back();
    switch (change.kind) {
      case Change::Kind::kAdded:
        sequence_.remove(change.before);
        break;
      case Change::Kind::kRemoved:
        sequence_.add(change.op, change.before);
        break;
      case Change::Kind::kChose:
        sequence_.choose(change.op, change.before);
        break;
    }
  }
}

bool Moves::propose(double most_cost) {
  most_cost_ = most_cost;
  if (!choosable_.empty() && random_.below(8) == 0) return switch_algorithm();
  const Index kind = random_.below(100);
  if (kind < 30) return drop_over_peak(1 << random_.below(4));
  if (kind < 40) return make_again();
  if (kind < 58) return take_out();
  if (kind < 78) return exchange();
  return relocate();
}

Index Moves::draw_tensor() {
  const Index slot = random_.below(static_cast<Index>(droppable_.size()));
  if (random_.below(4) == 0) return droppable_[at(slot)];
  const Share& share = shares_[at(slot)];
  return droppable_[at(random_.unit() < share.own ? slot : share.other)];
}

Index Moves::draw_run() {
  const auto runs = sequence_.runs(random_.below(s_.ops()));
  if (runs.empty()) return -1;
  return runs[static_cast<std::size_t>(random_.below(static_cast<Index>(runs.size())))];
}

bool Moves::find_chain(Index tensor, Index position, Index lost_before) {
  ops_.clear();
  wanted_.assign(1, s_.producer(tensor));
  const bool deep = random_.below(8) != 0;
  while (!wanted_.empty()) {
    const Index op = wanted_.back();
    wanted_.pop_back();
    if (std::find(ops_.begin(), ops_.end(), op) != ops_.end()) continue;
    if (!s_.rerunnable(op) || ops_.size() == kLongestChain) return false;
    ops_.push_back(op);
    for (TensorId id : s_.op(op).inputs) {
      const auto input = static_cast<Index>(id.index());
      const Index producer = s_.producer(input);
      if (producer < 0 || !s_.rerunnable(producer)) continue;
      const LiveSequence::CopyView copy = sequence_.copy_seen_at(input, position);
      const bool destroyed = s_.destroyer(input) >= 0 && copy.last_use >= 0 &&
                             copy.last_use < position &&
                             sequence_.op_at(copy.last_use) == s_.destroyer(input);
      const Index live_to = std::max(copy.last_use, copy.made);
      if (destroyed || (deep && live_to < lost_before)) wanted_.push_back(producer);
    }
  }
  std::sort(ops_.begin(), ops_.end());
  return true;
}

double Moves::cost_of_chain() const {
  double cost = 0;
  for (Index op : ops_) cost += static_cast<double>(sequence_.cost_of(op));
  return cost;
}

bool Moves::run_chain(Index position) {
  for (Index op : ops_) {
    const Index place = sequence_.free_before(position);
    if (place < 0) return false;
    add(op, place);
  }
  return true;
}

bool Moves::drop_over_peak(Index contestants) {
  if (droppable_.empty()) return false;
  const Index peak = sequence_.peak_position();
  const double excess = static_cast<double>(std::max<Bytes>(sequence_.peak() - target_, 1));
  const double left = most_cost_ - static_cast<double>(sequence_.cost());
  double best = std::numeric_limits<double>::infinity();
  Index place = -1;
  for (int attempt = 0; attempt < 12 + 2 * contestants && contestants > 0; ++attempt) {
    const Index tensor = draw_tensor();
    const LiveSequence::CopyView copy = sequence_.copy_seen_at(tensor, peak);
    if (!copy.exists || copy.used_here || copy.next_use < 0 || copy.made == peak) continue;
    if (sequence_.op_at(peak) == s_.producer(tensor)) continue;
    // Before its next use, or now and then before a later one: the ones in between then still see
    // the old copy, which is no gain at this peak but may be at others.
    if (!find_chain(tensor, copy.next_use, random_.below(2) == 0 ? peak + 1 : copy.next_use)) {
      continue;
    }
    --contestants;
    const double cost = cost_of_chain();
    if (cost > left) continue;
    const double price =
        (cost + 1) / std::min(static_cast<double>(s_.tensor(tensor).bytes), excess);
    if (price >= best) continue;
    best = price;
    place = copy.next_use;
    std::swap(best_ops_, ops_);
  }
  if (place < 0) return false;
  std::swap(best_ops_, ops_);
  return run_chain(place);
}

bool Moves::make_again() {
  if (droppable_.empty()) return false;
  const Index tensor = draw_tensor();
  const std::span<const Index> readers = s_.readers(tensor);
  const Index reader =
      readers[static_cast<std::size_t>(random_.below(static_cast<Index>(readers.size())))];
  const std::span<const Index> runs = sequence_.runs(reader);
  if (runs.empty()) return false;
  const Index use = runs[static_cast<std::size_t>(random_.below(static_cast<Index>(runs.size())))];
  const LiveSequence::CopyView copy = sequence_.copy_seen_at(tensor, use);
  // Not where it has just been made.
  return find_chain(tensor, use, std::max(copy.made + 1, use - random_.below(use + 1))) &&
         static_cast<double>(sequence_.cost()) + cost_of_chain() <= most_cost_ && run_chain(use);
}

bool Moves::take_out_at(Index position) {
  const Index op = sequence_.op_at(position);
  wanted_.clear();
  for (TensorId id : s_.op(op).inputs) {
    const LiveSequence::CopyView copy =
        sequence_.copy_seen_at(static_cast<Index>(id.index()), position);
    if (copy.made >= 0) wanted_.push_back(copy.made);
  }
  remove(position);
  // What ran again only for this run goes with it.
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const Index made = wanted_[i];
    const Index maker = sequence_.op_at(made);
    if (maker < 0 || sequence_.runs(maker).size() < 2) continue;
    const auto& outputs = s_.op(maker).outputs;
    const bool read = std::any_of(outputs.begin(), outputs.end(), [&](TensorId t) {
      return sequence_.has_readers(static_cast<Index>(t.index()), made);
    });
    if (read) continue;
    for (TensorId id : s_.op(maker).inputs) {
      const LiveSequence::CopyView copy =
          sequence_.copy_seen_at(static_cast<Index>(id.index()), made);
      if (copy.made >= 0) wanted_.push_back(copy.made);
    }
    remove(made);
  }
  return true;
}

bool Moves::take_out() {
  const std::vector<Index>& repeated = sequence_.repeated_ops();
  if (repeated.empty()) return false;
  const Index op =
      repeated[static_cast<std::size_t>(random_.below(static_cast<Index>(repeated.size())))];
  const std::span<const Index> runs = sequence_.runs(op);
  return take_out_at(
      runs[static_cast<std::size_t>(random_.below(static_cast<Index>(runs.size())))]);
}

bool Moves::switch_algorithm() {
  if (random_.below(2) == 0 && choose_leaner_at_peak()) return true;
  const Index op = choosable_[at(random_.below(static_cast<Index>(choosable_.size())))];
  const Index other = random_.below(static_cast<Index>(s_.op(op).choices()) - 1);
  choose(op, other < sequence_.choice(op) ? other : other + 1);
  return true;
}

bool Moves::choose_faster() {
  const Index op = choosable_[at(random_.below(static_cast<Index>(choosable_.size())))];
  if (sequence_.choice(op) == 0) return false;
  choose(op, random_.below(sequence_.choice(op)));
  return true;
}

bool Moves::choose_leaner_at_peak() {
  const Index op = sequence_.op_at(sequence_.peak_position());
  if (op < 0) return false;
  const auto last = static_cast<Index>(s_.op(op).leaner.size());
  const Index choice = sequence_.choice(op);
  if (choice == last) return false;
  choose(op, choice + 1 + random_.below(last - choice));
  return true;
}

bool Moves::exchange() {
  // One run mostly, now and then several; or a faster algorithm for the slower one.
  const bool faster = !choosable_.empty() && random_.below(3) == 0;
  for (bool more = true; more; more = random_.below(3) == 0) {
    if (!(faster ? choose_faster() : take_out())) break;
  }
  if (changes_.empty()) return false;
  const Index contestants = 1 << random_.below(6);
  for (int added = 0; added < kMostExchanged; ++added) {
    if (!sequence_.valid()) return false;
    if (sequence_.peak() <= target_) break;
    if (!choosable_.empty() && random_.below(3) == 0 && choose_leaner_at_peak()) continue;
    if (!drop_over_peak(contestants)) break;
  }
  return true;
}

bool Moves::relocate() {
  const Index from = draw_run();
  if (from < 0) return false;
  const Index op = sequence_.op_at(from);
  Index low = -1, high = sequence_.end();
  for (TensorId id : s_.op(op).inputs) {
    low = std::max(low, sequence_.copy_seen_at(static_cast<Index>(id.index()), from).made);
  }
  for (TensorId id : s_.op(op).outputs) {
    high = std::min(high, sequence_.first_use_of_made(static_cast<Index>(id.index()), from));
  }
  if (s_.freedom() == OrderFreedom::kFixed && sequence_.runs(op).front() == from) {
    if (op > 0) low = std::max(low, sequence_.runs(op - 1).front());
    if (op + 1 < s_.ops()) high = std::min(high, sequence_.runs(op + 1).front());
  }
  if (high - low < 2) return false;
  Index wish = low + 1 + random_.below(high - low - 1);
  const Index kind = random_.below(3);
  if (kind == 0) wish = low + 1;
  if (kind == 1) wish = high - 1;
  if (wish >= sequence_.end() - 1) wish = sequence_.end() - 2;
  remove(from);
  const Index place = sequence_.free_between(low, high, wish);
  if (place < 0 || place == from) {
    take_back();
    return false;
  }
  add(op, place);
  return true;
}

}  // namespace reprise::planner
