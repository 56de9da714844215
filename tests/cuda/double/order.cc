#include "tests/cuda/double/order.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "tests/cuda/double/memory.h"

namespace reprise::test::cuda {

void Clock::join(const Clock& other) {
  if (ticks_.size() < other.ticks_.size()) ticks_.resize(other.ticks_.size());
  for (std::size_t i = 0; i < other.ticks_.size(); ++i)
    ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
}

void Clock::set(Chain chain, std::uint64_t tick) {
  if (ticks_.size() <= chain) ticks_.resize(chain + 1);
  ticks_[chain] = tick;
}

Chain Order::new_chain() {
  ticks_.push_back(0);
  return ticks_.size() - 1;
}

void Order::split_at(std::uintptr_t address) {
  auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return;
  auto& [begin, segment] = *std::prev(after);
  if (begin == address || segment.end <= address) return;
  Segment rest = segment;
  segment.end = address;
  segments_.emplace_hint(after, address, std::move(rest));
}

// Segments without gaps over the whole range.
void Order::cover(std::uintptr_t begin, std::uintptr_t end) {
  split_at(begin);
  split_at(end);
  std::uintptr_t at = begin;
  for (auto next = segments_.lower_bound(begin); at < end; ++next) {
    const std::uintptr_t until = next == segments_.end() ? end : std::min(end, next->first);
    if (at < until) next = segments_.emplace_hint(next, at, Segment{until, {}, {}});
    at = next->second.end;
  }
}

std::vector<std::string> Order::access(const void* begin, std::size_t bytes, bool written,
                                       const Actor& actor, const Clock& before) {
  std::vector<std::string> found;
  if (bytes == 0) return found;
  std::set<std::pair<Chain, std::uint64_t>> named;
  const auto from = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t to = from + bytes;
  cover(from, to);

  const auto against = [&](const Actor& other, bool other_wrote, std::uintptr_t at,
                           std::uintptr_t end) {
    if (other.chain == actor.chain || before.at(other.chain) >= other.tick) return;
    if (!named.emplace(other.chain, other.tick).second) return;
    found.push_back(fmt::format("unordered: {} {} and {} {} {}; neither waits for the other",
                                *other.name, other_wrote ? "writes" : "reads", *actor.name,
                                written ? "writes" : "reads",
                                memory().describe(reinterpret_cast<const void*>(at), end - at)));
  };
  for (auto at = segments_.lower_bound(from); at != segments_.end() && at->first < to; ++at) {
    Segment& segment = at->second;
    if (segment.write) against(*segment.write, true, at->first, segment.end);
    if (written) {
      for (const Actor& reader : segment.reads) against(reader, false, at->first, segment.end);
      continue;
    }
    const auto same = std::find_if(segment.reads.begin(), segment.reads.end(),
                                   [&](const Actor& r) { return r.chain == actor.chain; });
    if (same == segment.reads.end())
      segment.reads.push_back(actor);
    else
      *same = actor;
  }
  if (written) {
    segments_.erase(segments_.lower_bound(from), segments_.lower_bound(to));
    segments_[from] = Segment{to, actor, {}};
  }
  return found;
}

bool Order::writes_over(const void* begin, std::size_t bytes, const Clock& known) const {
  const auto from = reinterpret_cast<std::uintptr_t>(begin);
  auto at = segments_.upper_bound(from);
  if (at != segments_.begin()) --at;
  for (; at != segments_.end() && at->first < from + bytes; ++at) {
    const Segment& segment = at->second;
    if (segment.end > from && segment.write && known.at(segment.write->chain) < segment.write->tick)
      return false;
  }
  return true;
}

void Order::forget(const void* begin, std::size_t bytes) {
  const auto from = reinterpret_cast<std::uintptr_t>(begin);
  split_at(from);
  split_at(from + bytes);
  segments_.erase(segments_.lower_bound(from), segments_.lower_bound(from + bytes));
}

}  // namespace reprise::test::cuda
