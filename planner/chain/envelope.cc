#include "planner/chain/envelope.h"

#include <algorithm>

#include "planner/chain/rounding.h"

// Nearly all candidates lie above what is known nearly everywhere. A table per staircase of what
// the cells of memory cost at least lets four cells be compared at once; only where a candidate may
// lie below it is merged step by step.
//
// A staircase shifted by `bytes` = u cells and a rest costs in cell k at least what it costs
// unshifted in cell k - u.

namespace reprise::planner {
namespace {

constexpr Bytes kEndless = std::numeric_limits<Bytes>::max();
constexpr float kNever = std::numeric_limits<float>::infinity();
constexpr std::size_t kBlock = 16;  // cells compared at once

std::size_t index(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

// Walks a staircase along rising memory.
class Walker {
 public:
  // At `memory`, which is not below the first step.
  Walker(const CellStaircase& stairs, Bytes shift, Bytes memory, const MemoryCells& cells)
      : end_(stairs.steps.data() + stairs.steps.size()), shift_(shift) {
    const std::int32_t cell = cells.of(memory - shift) - stairs.first_cell;
    next_ = index(cell) < stairs.before.size() ? stairs.steps.data() + stairs.before[index(cell)]
                                               : end_;
    advance(memory);
  }
  void advance(Bytes memory) {
    while (next_ != end_ && next_->memory + shift_ <= memory) ++next_;
  }
  [[nodiscard]] Bytes next_memory() const {
    return next_ == end_ ? kEndless : next_->memory + shift_;
  }
  [[nodiscard]] std::int64_t cost() const { return (next_ - 1)->cost; }

 private:
  const StairStep* next_;
  const StairStep* end_;
  Bytes shift_;
};

// What the cells cost at least.
class Shifted {
 public:
  Shifted(const Envelope::Part& part, const MemoryCells& cells)
      : least_(part.stairs.least), first_(part.stairs.first_cell + cells.of(part.bytes)) {}
  [[nodiscard]] std::int32_t end() const {
    return first_ + static_cast<std::int32_t>(least_.size());
  }
  // From that cell on; null past the end.
  [[nodiscard]] const float* at(std::int32_t cell) const {
    return cell < end() ? least_.data() + (cell - first_) : nullptr;
  }
  [[nodiscard]] float last() const { return least_.back(); }

 private:
  std::span<const float> least_;
  std::int32_t first_;
};

// The memory from which on `stairs` cost at most this; kEndless when they never do.
Bytes memory_for(const Staircase& stairs, std::int64_t cost) {
  const auto found =
      std::lower_bound(stairs.begin(), stairs.end(), cost,
                       [](const StairStep& s, std::int64_t c) { return s.cost > c; });
  return found == stairs.end() ? kEndless : found->memory;
}

}  // namespace

void Envelope::clear() {
  stairs_.clear();
  most_.clear();
  before_.clear();
}

void Envelope::add(Bytes memory, std::int64_t cost, ChainChoice choice) {
  add(Staircase{{memory, cost, choice}}, 0, 0, 0, choice);
}

void Envelope::add(const Staircase& part, Bytes bytes, Bytes least, std::int64_t cost,
                   ChainChoice choice) {
  news_.clear();
  std::size_t known = 0;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const Bytes memory = std::max(part[i].memory + bytes, least);
    if (memory > cap_) break;
    if (i + 1 < part.size() && part[i + 1].memory + bytes <= memory) continue;
    const std::int64_t total = part[i].cost + cost;
    while (known < stairs_.size() && stairs_[known].memory <= memory) ++known;
    if (known == 0 || stairs_[known - 1].cost > total) news_.push_back({memory, total, choice});
  }
  merge_news();
}

void Envelope::add(Part first, Part second, Bytes least, std::int64_t cost, ChainChoice choice) {
  const Staircase& a = first.stairs.steps;
  const Staircase& b = second.stairs.steps;
  if (a.empty() || b.empty()) return;
  const Bytes begin =
      std::max({a.front().memory + first.bytes, b.front().memory + second.bytes, least});
  const Bytes cap = std::min(cap_, memory_for(stairs_, a.back().cost + b.back().cost + cost) - 1);
  if (begin > cap) return;
  const Bytes end =
      std::max({begin, a.back().memory + first.bytes, b.back().memory + second.bytes});
  const std::int32_t last_cell = cells_.of(std::min(end, cap));
  cover(last_cell);
  find_runs(first, second, cost, cells_.of(begin), last_cell + 1);
  news_.clear();
  for (const Run& run : runs_) {
    collect(first, second, std::max(begin, cells_.begin(run.begin)),
            std::min(cap, cells_.begin(run.end) - 1), cost, choice);
  }
  merge_news();
}

// Where the candidate may lie below what is known.
void Envelope::find_runs(Part first, Part second, std::int64_t cost, std::int32_t begin,
                         std::int32_t end) {
  runs_.clear();
  Shifted a(first, cells_), b(second, cells_);
  if (a.end() > b.end()) std::swap(a, b);
  const float extra = round_down(cost);
  const std::int32_t a_end = std::clamp(a.end(), begin, end);
  const std::int32_t b_end = std::clamp(b.end(), a_end, end);
  const float *const a_least = a.at(begin), *const b_least = b.at(begin);
  scan(begin, a_end, [=](std::size_t k) { return a_least[k] + b_least[k] + extra; });
  // Past its end a part costs what it costs there.
  const float a_last = a.last() + extra, *const b_rest = b.at(a_end);
  scan(a_end, b_end, [=](std::size_t k) { return b_rest[k] + a_last; });
  const float both_last = a_last + b.last();
  scan(b_end, end, [=](std::size_t) { return both_last; });
}

// `cost(k)` is that of the k-th cell from `begin` on.
template <class Cost>
void Envelope::scan(std::int32_t begin, std::int32_t end, Cost cost) {
  if (begin >= end) return;
  const float* const most = most_.data() + begin;
  const std::size_t count = index(end - begin);
  const auto check = [&](std::size_t k) {
    if (cost(k) >= most[k]) return;
    const std::int32_t cell = begin + static_cast<std::int32_t>(k);
    if (runs_.empty() || runs_.back().end != cell) runs_.push_back({cell, cell});
    ++runs_.back().end;
  };
  std::size_t k = 0;
  for (; k + kBlock <= count; k += kBlock) {
    int below = 0;
    for (std::size_t t = 0; t < kBlock; ++t) below += cost(k + t) < most[k + t] ? 1 : 0;
    if (below == 0) continue;
    for (std::size_t t = 0; t < kBlock; ++t) check(k + t);
  }
  for (; k < count; ++k) check(k);
}

void Envelope::collect(Part first, Part second, Bytes memory, Bytes last, std::int64_t cost,
                       ChainChoice choice) {
  Walker a(first.stairs, first.bytes, memory, cells_);
  Walker b(second.stairs, second.bytes, memory, cells_);
  const StairStep* const begin = stairs_.data();
  const StairStep* const end = begin + stairs_.size();
  const StairStep* known = begin + before_[index(cells_.of(memory))];  // first step above `memory`
  while (memory <= last) {
    const std::int64_t total = a.cost() + b.cost() + cost;
    while (known != end && known->memory <= memory) ++known;
    if ((known == begin || (known - 1)->cost > total) &&
        (news_.empty() || news_.back().cost > total)) {
      news_.push_back({memory, total, choice});
    }
    memory = std::min(a.next_memory(), b.next_memory());
    a.advance(memory);
    b.advance(memory);
  }
}

void Envelope::merge_news() {
  if (news_.empty()) return;
  const std::int32_t cell = cells_.of(news_.front().memory);
  cover(cell);
  // Steps before the first and after the last that is in question stay as they are.
  std::size_t first = before_[index(cell)];
  while (first < stairs_.size() && stairs_[first].memory < news_.front().memory) ++first;
  merged_.clear();
  std::size_t i = first, j = 0;
  const auto take = [&](const StairStep& step) {
    if (!merged_.empty() && merged_.back().cost <= step.cost) return;
    merged_.push_back(step);
  };
  // At equal memory the cheaper one first, what was known before what is new.
  while (j < news_.size()) {
    const bool old = i < stairs_.size() &&
                     (stairs_[i].memory < news_[j].memory ||
                      (stairs_[i].memory == news_[j].memory && stairs_[i].cost <= news_[j].cost));
    take(old ? stairs_[i++] : news_[j++]);
  }
  while (i < stairs_.size() && stairs_[i].cost >= merged_.back().cost) ++i;
  const auto begin = stairs_.begin() + static_cast<std::ptrdiff_t>(first);
  const std::size_t replaced = i - first, both = std::min(replaced, merged_.size());
  const auto rest = merged_.begin() + static_cast<std::ptrdiff_t>(both);
  const auto place = std::copy(merged_.begin(), rest, begin);
  if (replaced > both) {
    stairs_.erase(place, place + static_cast<std::ptrdiff_t>(replaced - both));
  } else {
    stairs_.insert(place, rest, merged_.end());
  }
  summarize(cell, first + merged_.size(),
            static_cast<std::ptrdiff_t>(merged_.size()) - static_cast<std::ptrdiff_t>(replaced));
}

// The table reaches up to this cell.
void Envelope::cover(std::int32_t cell) {
  if (most_.size() > index(cell)) return;
  most_.resize(index(cell) + 1, stairs_.empty() ? kNever : round_up(stairs_.back().cost));
  before_.resize(index(cell) + 1, static_cast<std::uint32_t>(stairs_.size()));
}

// From this cell on; steps from `settled` on are those that were there, at other places by now.
void Envelope::summarize(std::int32_t cell, std::size_t settled, std::ptrdiff_t moved) {
  cover(cells_.of(stairs_.back().memory) + 1);
  std::size_t i = before_[index(cell)];
  std::size_t k = index(cell);
  for (; k < most_.size(); ++k) {
    const Bytes begin = cells_.begin(static_cast<std::int32_t>(k));
    while (i < stairs_.size() && stairs_[i].memory < begin) ++i;
    before_[k] = static_cast<std::uint32_t>(i);
    const bool on_border = i < stairs_.size() && stairs_[i].memory == begin;
    const std::size_t within = i + (on_border ? 1 : 0);
    most_[k] = within == 0 ? kNever : round_up(stairs_[within - 1].cost);
    if (i > settled) break;
  }
  for (++k; moved != 0 && k < most_.size(); ++k) {
    before_[k] = static_cast<std::uint32_t>(static_cast<std::ptrdiff_t>(before_[k]) + moved);
  }
}

}  // namespace reprise::planner
