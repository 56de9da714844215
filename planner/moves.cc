#include "planner/moves.h"

#include <algorithm>

namespace reprise::planner {
namespace {

// More runs than this are never added by one move.
constexpr std::size_t kLongestChain = 24;
// Chains that one exchange puts in.
constexpr int kMostExchanged = 8;

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
    summed_bytes_.push_back(sum);
  }
}

void Moves::add(Index op, Index position) {
  sequence_.add(op, position);
  changes_.push_back({op, position, true});
}

void Moves::remove(Index position) {
  changes_.push_back({sequence_.op_at(position), position, false});
  sequence_.remove(position);
}

void Moves::take_back() {
  for (; !changes_.empty(); changes_.pop_back()) {
    const Change& change = changes_.back();
    if (change.added) {
      sequence_.remove(change.position);
    } else {
      sequence_.add(change.op, change.position);
    }
  }
}

bool Moves::propose() {
  const Index kind = random_.below(100);
  if (kind < 30) return drop_over_peak();
  if (kind < 40) return make_again();
  if (kind < 58) return take_out();
  if (kind < 78) return exchange();
  return relocate();
}

Index Moves::draw_tensor() {
  if (random_.below(4) == 0) {
    return droppable_[static_cast<std::size_t>(
        random_.below(static_cast<Index>(droppable_.size())))];
  }
  const double point = random_.unit() * summed_bytes_.back();
  const auto found = std::upper_bound(summed_bytes_.begin(), summed_bytes_.end(), point);
  const auto i =
      std::min(static_cast<std::size_t>(found - summed_bytes_.begin()), droppable_.size() - 1);
  return droppable_[i];
}

Index Moves::draw_run() {
  const auto runs = sequence_.runs(random_.below(s_.ops()));
  if (runs.empty()) return -1;
  return runs[static_cast<std::size_t>(random_.below(static_cast<Index>(runs.size())))];
}

bool Moves::run_again(Index tensor, Index position, Index lost_before) {
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
  for (Index op : ops_) {
    const Index place = sequence_.free_before(position);
    if (place < 0) return false;
    add(op, place);
  }
  return true;
}

bool Moves::drop_over_peak() {
  if (droppable_.empty()) return false;
  const Index peak = sequence_.peak_position();
  for (int attempt = 0; attempt < 12; ++attempt) {
    const Index tensor = draw_tensor();
    const LiveSequence::CopyView copy = sequence_.copy_seen_at(tensor, peak);
    if (!copy.exists || copy.used_here || copy.next_use < 0 || copy.made == peak) continue;
    if (sequence_.op_at(peak) == s_.producer(tensor)) continue;
    // Before its next use, or now and then before a later one: the ones in between then still see
    // the old copy, which is no gain at this peak but may be at others.
    return run_again(tensor, copy.next_use, random_.below(2) == 0 ? peak + 1 : copy.next_use);
  }
  return false;
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
  return run_again(tensor, use, std::max(copy.made + 1, use - random_.below(use + 1)));
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

bool Moves::exchange() {
  // One run mostly, now and then several.
  for (bool more = true; more; more = random_.below(3) == 0) {
    if (!take_out()) break;
  }
  if (changes_.empty()) return false;
  for (int added = 0; added < kMostExchanged; ++added) {
    if (!sequence_.valid()) return false;
    if (sequence_.peak() <= target_) break;
    if (!drop_over_peak()) break;
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
