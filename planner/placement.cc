#include "planner/placement.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace reprise::planner {
namespace {

const PackItem& at(const PackItems& problem, std::int32_t item) {
  return problem.items[static_cast<std::size_t>(item)];
}

std::vector<std::int32_t> all_items(const PackItems& problem) {
  std::vector<std::int32_t> order(problem.items.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// The free bytes of an address range without end, as gaps that never touch each other.
class FreeGaps {
 public:
  FreeGaps() { insert(0, kEndless); }

  // The lowest of the smallest gaps that hold `bytes`.
  Bytes take(Bytes bytes) {
    const auto [size, offset] = *by_size_.lower_bound({bytes, 0});
    erase(offset, size);
    if (size > bytes) insert(offset + bytes, size == kEndless ? kEndless : size - bytes);
    return offset;
  }

  void give_back(Bytes offset, Bytes bytes) {
    auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.end() && after->first == offset + bytes) {
      const auto [next, size] = *after;
      bytes = size == kEndless ? kEndless : bytes + size;
      erase(next, size);
      after = by_offset_.lower_bound(offset);
    }
    if (after != by_offset_.begin()) {
      const auto [previous, size] = *std::prev(after);
      if (previous + size == offset) {
        erase(previous, size);
        insert(previous, bytes == kEndless ? kEndless : size + bytes);
        return;
      }
    }
    insert(offset, bytes);
  }

 private:
  static constexpr Bytes kEndless = std::numeric_limits<Bytes>::max();

  void insert(Bytes offset, Bytes size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void erase(Bytes offset, Bytes size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  std::map<Bytes, Bytes> by_offset_;
  std::set<std::pair<Bytes, Bytes>> by_size_;
};

// Greedy placement with the scratch space that all placements of one problem share.
class Greedy {
 public:
  Greedy(const PackItems& problem, const Conflicts& conflicts)
      : problem_(problem), conflicts_(conflicts) {}

  Placement place(const std::vector<std::int32_t>& order) {
    return place(std::vector<Bytes>(problem_.items.size(), -1), order);
  }

  // Around those that have an offset, -1 being none.
  Placement place(std::vector<Bytes> offsets, const std::vector<std::int32_t>& order) {
    for (std::int32_t item : order) {
      offsets[static_cast<std::size_t>(item)] = best_gap(offsets, item);
    }
    Placement result;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      result.arena = std::max(result.arena, offsets[i] + problem_.items[i].bytes);
    }
    result.offsets = std::move(offsets);
    return result;
  }

 private:
  Bytes best_gap(const std::vector<Bytes>& offsets, std::int32_t item) {
    taken_.clear();
    for (std::int32_t other : conflicts_.of(static_cast<std::size_t>(item))) {
      const Bytes offset = offsets[static_cast<std::size_t>(other)];
      if (offset >= 0) taken_.emplace_back(offset, offset + at(problem_, other).aligned);
    }
    std::sort(taken_.begin(), taken_.end());
    const Bytes bytes = at(problem_, item).aligned;
    Bytes top = 0, best = -1, best_size = std::numeric_limits<Bytes>::max();
    for (const auto& [begin, end] : taken_) {
      const Bytes gap = begin - top;
      if (gap >= bytes && gap < best_size) {
        best = top;
        best_size = gap;
      }
      top = std::max(top, end);
    }
    return best >= 0 ? best : top;
  }

  const PackItems& problem_;
  const Conflicts& conflicts_;
  std::vector<std::pair<Bytes, Bytes>> taken_;
};

}  // namespace

Placement place_by_time(const PackItems& problem, bool backward) {
  Placement result;
  result.offsets.assign(problem.items.size(), 0);
  const auto first = [&](std::int32_t i) {
    return backward ? problem.sections - at(problem, i).end : at(problem, i).begin;
  };
  const auto last = [&](std::int32_t i) {
    return backward ? problem.sections - at(problem, i).begin : at(problem, i).end;
  };
  std::vector<std::int32_t> starts = all_items(problem);
  std::vector<std::int32_t> ends = starts;
  std::sort(starts.begin(), starts.end(), [&](std::int32_t a, std::int32_t b) {
    if (first(a) != first(b)) return first(a) < first(b);
    if (last(a) != last(b)) return last(a) > last(b);
    if (at(problem, a).bytes != at(problem, b).bytes) {
      return at(problem, a).bytes > at(problem, b).bytes;
    }
    return a < b;
  });
  std::stable_sort(ends.begin(), ends.end(),
                   [&](std::int32_t a, std::int32_t b) { return last(a) < last(b); });
  FreeGaps gaps;
  std::size_t gone = 0;
  for (std::int32_t item : starts) {
    for (; last(ends[gone]) <= first(item); ++gone) {
      gaps.give_back(result.offsets[static_cast<std::size_t>(ends[gone])],
                     at(problem, ends[gone]).aligned);
    }
    const Bytes offset = gaps.take(at(problem, item).aligned);
    result.offsets[static_cast<std::size_t>(item)] = offset;
    result.arena = std::max(result.arena, offset + at(problem, item).bytes);
  }
  return result;
}

Placement place_in_order(const PackItems& problem, const Conflicts& conflicts,
                         const std::vector<std::int32_t>& order) {
  return Greedy(problem, conflicts).place(order);
}

Placement place_around(const PackItems& problem, const Conflicts& conflicts,
                       std::vector<Bytes> offsets, const std::vector<std::int32_t>& order) {
  return Greedy(problem, conflicts).place(std::move(offsets), order);
}

std::vector<std::vector<std::int32_t>> greedy_orders(const PackItems& problem) {
  const auto length = [](const PackItem& item) { return Bytes{item.end} - item.begin; };
  const auto sorted = [&](auto key) {
    std::vector<std::int32_t> order = all_items(problem);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return key(at(problem, a)) > key(at(problem, b));
    });
    return order;
  };
  using Pair = std::pair<double, double>;
  return {
      sorted([&](const PackItem& i) {
        return Pair(static_cast<double>(i.bytes), static_cast<double>(length(i)));
      }),
      sorted([&](const PackItem& i) {
        return Pair(static_cast<double>(i.bytes) * static_cast<double>(length(i)),
                    static_cast<double>(i.bytes));
      }),
      sorted([&](const PackItem& i) {
        return Pair(static_cast<double>(length(i)), static_cast<double>(i.bytes));
      }),
      sorted([&](const PackItem& i) {
        return Pair(-static_cast<double>(i.begin), static_cast<double>(length(i)));
      }),
  };
}

Placement place_with_feedback(const PackItems& problem, const Conflicts& conflicts,
                              std::vector<std::int32_t> order, int rounds) {
  Greedy greedy(problem, conflicts);
  std::vector<double> rank(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    rank[static_cast<std::size_t>(order[i])] = static_cast<double>(i + 1);
  }
  Placement best;
  for (int round = 0; round < rounds; ++round) {
    Placement placement = greedy.place(order);
    const bool better = round == 0 || placement.arena < best.arena;
    for (std::size_t i = 0; i < rank.size(); ++i) {
      const Bytes top = placement.offsets[i] + problem.items[i].bytes;
      if (top > problem.lower_bound) rank[i] *= 0.5;
    }
    if (better) best = std::move(placement);
    if (best.arena == problem.lower_bound) break;
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return rank[static_cast<std::size_t>(a)] < rank[static_cast<std::size_t>(b)];
    });
  }
  return best;
}

}  // namespace reprise::planner
