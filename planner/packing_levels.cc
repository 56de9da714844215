#include "planner/packing_levels.h"

#include <algorithm>
#include <limits>

#include "planner/random.h"

namespace reprise::planner {
namespace {

std::size_t index(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

// Per section of the coarse problem: the largest load of all items on its sections in the whole
// one, less the load of the large items.
std::vector<Bytes> loads_aside(const PackItems& whole, const PackItems& items,
                               const std::vector<std::int32_t>& large) {
  std::vector<std::int32_t> starts;
  starts.reserve(large.size());
  for (const std::int32_t i : large) starts.push_back(whole.items[index(i)].begin);
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  std::vector<Bytes> aside(index(items.sections), 0);
  for (std::size_t s = 0; s < starts.size(); ++s) {
    const auto first = whole.load.begin() + starts[s];
    const auto last = s + 1 < starts.size() ? whole.load.begin() + starts[s + 1] : whole.load.end();
    aside[s] = std::max<Bytes>(0, *std::max_element(first, last) - items.load[s]);
  }
  return aside;
}

}  // namespace

PackingLevel::PackingLevel(const PackItems& whole, const Conflicts& conflicts, Bytes smallest)
    : whole_(whole), conflicts_(conflicts) {
  std::vector<TimeRange> times;
  std::vector<Bytes> bytes;
  for (std::size_t i = 0; i < whole.items.size(); ++i) {
    const PackItem& item = whole.items[i];
    if (item.aligned < smallest) {
      small_.push_back(static_cast<std::int32_t>(i));
      continue;
    }
    large_.push_back(static_cast<std::int32_t>(i));
    times.push_back({item.begin, item.end});
    bytes.push_back(item.bytes);
  }
  std::stable_sort(small_.begin(), small_.end(), [&](std::int32_t a, std::int32_t b) {
    return whole.items[index(a)].aligned > whole.items[index(b)].aligned;
  });
  items_ = make_pack_items(times, bytes, whole.alignment);
  aside_ = loads_aside(whole, items_, large_);
  meets_ = Conflicts::find(items_.items, std::numeric_limits<std::int64_t>::max());
  search_ = std::make_unique<PackingSearch>(items_, *meets_);
}

// By size, by area, by length of life; at random around one of these.
std::vector<double> PackingLevel::priorities(int variant) const {
  std::vector<double> result;
  result.reserve(large_.size());
  Random random(static_cast<std::uint64_t>(variant));
  for (const PackItem& item : items_.items) {
    const auto length = static_cast<double>(item.end - item.begin);
    const auto bytes = static_cast<double>(item.bytes);
    const int key = variant % 3;
    double value = key == 0 ? bytes : key == 1 ? bytes * length : length * 1e3 + bytes * 1e-9;
    if (variant >= kVariants) value *= 0.5 + random.unit();
    result.push_back(value);
  }
  return result;
}

PackingLevel::Attempt PackingLevel::pack_within(Bytes capacity, int variant, std::int64_t steps,
                                                const std::function<bool()>& stop) {
  PackingSearch::Limits limits;
  limits.capacity = capacity;
  limits.steps = steps;
  limits.stop = stop;
  limits.room.reserve(aside_.size());
  const Bytes full = (capacity + whole_.slack) / whole_.alignment * whole_.alignment;
  for (const Bytes aside : aside_) limits.room.push_back(full - aside);
  const PlaceChoice choice = variant / 3 % 2 == 0 ? PlaceChoice::kTightest : PlaceChoice::kFewest;
  PackingSearch::Result found = search_->run(priorities(variant), choice, limits);
  Attempt attempt;
  attempt.exhausted = found.exhausted;
  attempt.steps = found.steps;
  if (!found.offsets) return attempt;
  std::vector<Bytes> offsets(whole_.items.size(), -1);
  for (std::size_t k = 0; k < large_.size(); ++k) offsets[index(large_[k])] = (*found.offsets)[k];
  attempt.placement = place_around(whole_, conflicts_, std::move(offsets), small_);
  for (const std::int32_t i : small_)
    attempt.steps += static_cast<std::int64_t>(conflicts_.of(index(i)).size()) * 8;
  return attempt;
}

}  // namespace reprise::planner
