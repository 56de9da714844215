#include "planner/conflicts.h"

#include <algorithm>
#include <numeric>

namespace reprise::planner {
namespace {

std::int32_t rank_of(const std::vector<std::int64_t>& sorted, std::int64_t time) {
  return static_cast<std::int32_t>(std::lower_bound(sorted.begin(), sorted.end(), time) -
                                   sorted.begin());
}

// From the numbers that start and end in each section.
std::int64_t count_pairs(const std::vector<PackItem>& items) {
  std::int32_t sections = 0;
  for (const PackItem& item : items) sections = std::max(sections, item.end);
  std::vector<std::int64_t> starts(static_cast<std::size_t>(sections) + 1, 0), ends = starts;
  for (const PackItem& item : items) {
    ++starts[static_cast<std::size_t>(item.begin)];
    ++ends[static_cast<std::size_t>(item.end)];
  }
  std::int64_t pairs = 0, live = 0;
  for (std::size_t s = 0; s < starts.size(); ++s) {
    live -= ends[s];
    pairs += starts[s] * live + starts[s] * (starts[s] - 1) / 2;
    live += starts[s];
  }
  return pairs;
}

}  // namespace

PackItems make_pack_items(const std::vector<TimeRange>& times, const std::vector<Bytes>& bytes,
                          Bytes alignment) {
  PackItems result;
  std::vector<std::int64_t> starts;
  starts.reserve(times.size());
  for (const TimeRange& range : times) starts.push_back(range.start);
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  result.sections = static_cast<std::int32_t>(starts.size());
  std::vector<Bytes> change(starts.size() + 1, 0);
  result.items.reserve(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    // An end between two starts is as good as the later start: nothing begins in between.
    const PackItem item{rank_of(starts, times[i].start), rank_of(starts, times[i].end), bytes[i],
                        base::align_up(bytes[i], alignment)};
    result.slack = std::max(result.slack, item.aligned - item.bytes);
    change[static_cast<std::size_t>(item.begin)] += item.aligned;
    change[static_cast<std::size_t>(item.end)] -= item.aligned;
    result.items.push_back(item);
  }
  result.load.resize(starts.size());
  std::partial_sum(change.begin(), change.end() - 1, result.load.begin());
  for (Bytes load : result.load) result.lower_bound = std::max(result.lower_bound, load);
  result.lower_bound -= result.slack;
  result.alignment = alignment;
  result.step = result.slack == 0 ? alignment : 1;
  return result;
}

std::optional<Conflicts> Conflicts::find(const std::vector<PackItem>& items, std::int64_t limit) {
  if (count_pairs(items) > limit) return std::nullopt;
  std::vector<std::int32_t> by_start(items.size());
  std::iota(by_start.begin(), by_start.end(), 0);
  std::stable_sort(by_start.begin(), by_start.end(), [&](std::int32_t a, std::int32_t b) {
    return items[static_cast<std::size_t>(a)].begin < items[static_cast<std::size_t>(b)].begin;
  });
  // Each pair is met once, when its later item starts.
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  std::vector<std::int32_t> live;
  std::vector<std::size_t> count(items.size() + 1, 0);
  for (std::int32_t i : by_start) {
    const PackItem& item = items[static_cast<std::size_t>(i)];
    std::erase_if(live, [&](std::int32_t other) {
      return items[static_cast<std::size_t>(other)].end <= item.begin;
    });
    for (std::int32_t other : live) {
      pairs.emplace_back(i, other);
      ++count[static_cast<std::size_t>(i)];
      ++count[static_cast<std::size_t>(other)];
    }
    live.push_back(i);
  }
  Conflicts result;
  result.first_.assign(items.size() + 1, 0);
  for (std::size_t i = 0; i < items.size(); ++i) {
    result.first_[i + 1] = result.first_[i] + count[i];
  }
  result.others_.resize(pairs.size() * 2);
  std::vector<std::size_t> next(result.first_.begin(), result.first_.end() - 1);
  for (const auto& [a, b] : pairs) {
    result.others_[next[static_cast<std::size_t>(a)]++] = b;
    result.others_[next[static_cast<std::size_t>(b)]++] = a;
  }
  return result;
}

}  // namespace reprise::planner
