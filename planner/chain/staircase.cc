#include "planner/chain/staircase.h"

#include <algorithm>

namespace reprise::planner {
namespace {

constexpr Bytes kEndless = std::numeric_limits<Bytes>::max();
// Steps of the envelope that are compared at once, at first.
constexpr std::ptrdiff_t kStride = 4;

// Walks a staircase along rising memory.
class Walker {
 public:
  Walker(const Staircase& stairs, Bytes shift)
      : next_(stairs.data()), end_(stairs.data() + stairs.size()), shift_(shift) {}
  // The steps up to this memory; from the first one on cost() is defined.
  void advance(Bytes memory) {
    while (next_ != end_ && next_->memory + shift_ <= memory) ++next_;
  }
  // The same in strides that grow: for a long way.
  void leap(Bytes memory) {
    std::ptrdiff_t stride = 1;
    while (stride < end_ - next_ && (next_ + stride)->memory + shift_ <= memory) {
      next_ += stride;
      stride *= 2;
    }
    const StairStep* const far = next_ + std::min(stride, end_ - next_);
    next_ = std::upper_bound(next_, far, memory - shift_,
                             [](Bytes m, const StairStep& s) { return m < s.memory; });
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

// The memory from which on `stairs` cost at most this; kEndless when they never do.
Bytes memory_for(const Staircase& stairs, std::int64_t cost) {
  const auto found =
      std::lower_bound(stairs.begin(), stairs.end(), cost,
                       [](const StairStep& s, std::int64_t c) { return s.cost > c; });
  return found == stairs.end() ? kEndless : found->memory;
}

}  // namespace

const StairStep* step_within(const Staircase& stairs, Bytes memory) {
  const auto after = std::upper_bound(stairs.begin(), stairs.end(), memory,
                                      [](Bytes m, const StairStep& s) { return m < s.memory; });
  return after == stairs.begin() ? nullptr : &*std::prev(after);
}

void Envelope::add(const Staircase& part, Bytes bytes, Bytes least, std::int64_t cost,
                   ChainChoice choice) {
  if (part.empty()) return;
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

void Envelope::add(const Staircase& first, Bytes first_bytes, const Staircase& second,
                   Bytes second_bytes, Bytes least, std::int64_t cost, ChainChoice choice) {
  if (first.empty() || second.empty()) return;
  news_.clear();
  const std::int64_t least_cost = first.back().cost + second.back().cost + cost;
  const Bytes cap = std::min(cap_, memory_for(stairs_, least_cost) - 1);
  Bytes memory =
      std::max({first.front().memory + first_bytes, second.front().memory + second_bytes, least});
  Walker a(first, first_bytes), b(second, second_bytes);
  a.leap(memory);
  b.leap(memory);
  const StairStep* const begin = stairs_.data();
  const StairStep* const end = begin + stairs_.size();
  const StairStep* known = begin;  // first step above `memory`
  std::ptrdiff_t stride = kStride;
  while (memory <= cap) {
    while (known != end && known->memory <= memory) ++known;
    // A stretch of the envelope that even what the candidate costs at its end does not undercut.
    const Bytes far = end - known > stride ? std::min((known + stride)->memory - 1, cap) : cap;
    Walker far_a = a, far_b = b;
    far_a.leap(far);
    far_b.leap(far);
    if (known != begin && far_a.cost() + far_b.cost() + cost >= (known - 1)->cost) {
      a = far_a;
      b = far_b;
      known += std::min(stride, end - known);
      stride *= 2;
      memory = std::min(a.next_memory(), b.next_memory());
      continue;
    }
    stride = std::max<std::ptrdiff_t>(kStride, stride / 4);
    while (memory <= far) {
      a.advance(memory);
      b.advance(memory);
      const std::int64_t total = a.cost() + b.cost() + cost;
      while (known != end && known->memory <= memory) ++known;
      if ((known == begin || (known - 1)->cost > total) &&
          (news_.empty() || news_.back().cost > total)) {
        news_.push_back({memory, total, choice});
      }
      memory = std::min(a.next_memory(), b.next_memory());
    }
  }
  merge_news();
}

void Envelope::merge_news() {
  if (news_.empty()) return;
  merged_.clear();
  std::size_t i = 0, j = 0;
  const auto take = [&](const StairStep& step) {
    if (!merged_.empty() && merged_.back().cost <= step.cost) return;
    merged_.push_back(step);
  };
  // At equal memory the cheaper one first, what was known before what is new.
  while (i < stairs_.size() || j < news_.size()) {
    const bool old = j == news_.size() ||
                     (i < stairs_.size() &&
                      (stairs_[i].memory < news_[j].memory ||
                       (stairs_[i].memory == news_[j].memory && stairs_[i].cost <= news_[j].cost)));
    take(old ? stairs_[i++] : news_[j++]);
  }
  stairs_.swap(merged_);
}

void Envelope::thin_out(std::size_t most) {
  if (stairs_.size() <= most || most < 3) return;
  const auto value = [](Bytes b) { return static_cast<double>(b); };
  merged_.clear();
  merged_.push_back(stairs_.front());
  const double low = value(stairs_.front().memory);
  const double width = (value(stairs_.back().memory) - low) / static_cast<double>(most - 2);
  std::size_t i = 1;
  const std::size_t last = stairs_.size() - 1;
  while (i < last) {
    const auto bucket = static_cast<std::int64_t>((value(stairs_[i].memory) - low) / width);
    std::size_t end = i;
    while (end < last &&
           static_cast<std::int64_t>((value(stairs_[end].memory) - low) / width) == bucket) {
      ++end;
    }
    const StairStep& before = stairs_[i - 1];
    const StairStep& after = stairs_[end];
    const double slope = value(before.cost - after.cost) / value(after.memory - before.memory);
    std::size_t best = i;
    const auto height = [&](const StairStep& s) {
      return value(s.cost) + slope * value(s.memory - before.memory);
    };
    for (std::size_t k = i; k < end; ++k) {
      if (height(stairs_[k]) < height(stairs_[best])) best = k;
    }
    merged_.push_back(stairs_[best]);
    i = end;
  }
  merged_.push_back(stairs_[last]);
  stairs_.swap(merged_);
}

}  // namespace reprise::planner
