#include "planner/packing_search.h"

#include <algorithm>
#include <limits>
#include <numeric>

// Any packing can be pushed down until each item rests on the ground or on an item below it. The
// floors of the sections then form valleys between walls:
//
//        |   |          wall: a higher floor, or a section with nothing left to place
//        |   |___|
//     ___|       a   b     What comes to lie lowest on section a either starts there, ends by b and
//                          rests on the valley's floor; or it lies no lower than the lower wall, or
//                          than the smallest item on the rest of the valley: then a's floor goes
//                          up to there, which wastes bytes. Likewise for the last section.
//
// So it is enough to branch over one end of one valley, any one: unlike in searches that place
// items from the bottom to the top (MiniMalloc, Moffitt 2023) the most constrained place comes
// first, and a section without slack leaves no choice but to be filled without a hole.

namespace reprise::planner {
namespace {

constexpr Bytes kWall = std::numeric_limits<Bytes>::max();
constexpr std::int64_t kStepsBetweenStops = 1 << 20;

std::size_t index(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

// The items of each section as one flat table, in the given order.
template <class SectionOf>
void group(const std::vector<std::int32_t>& order, std::int32_t sections, SectionOf section_of,
           std::vector<std::size_t>& first, std::vector<std::int32_t>& members) {
  first.assign(index(sections) + 2, 0);
  for (const std::int32_t i : order) ++first[index(section_of(i)) + 1];
  for (std::size_t s = 1; s < first.size(); ++s) first[s] += first[s - 1];
  members.resize(order.size());
  std::vector<std::size_t> next = first;
  for (const std::int32_t i : order) members[next[index(section_of(i))]++] = i;
}

}  // namespace

PackingSearch::PackingSearch(const PackItems& problem, const Conflicts& conflicts)
    : problem_(problem), skyline_(problem, conflicts) {}

void PackingSearch::sort_by(const std::vector<double>& priority) {
  std::vector<std::int32_t> order(problem_.items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return priority[index(a)] > priority[index(b)];
  });
  const auto item = [&](std::int32_t i) -> const PackItem& { return problem_.items[index(i)]; };
  group(
      order, problem_.sections, [&](std::int32_t i) { return item(i).begin; }, first_starting_,
      starting_);
  group(
      order, problem_.sections, [&](std::int32_t i) { return item(i).end; }, first_ending_,
      ending_);
}

PackingSearch::Result PackingSearch::run(const std::vector<double>& priority, PlaceChoice choice,
                                         const Limits& limits) {
  Result result;
  choice_ = choice;
  path_.clear();
  candidates_.clear();
  if (!skyline_.reset(limits.room, limits.capacity)) {
    result.exhausted = true;
    return result;
  }
  sort_by(priority);
  const std::int64_t start = skyline_.steps();
  std::int64_t ask = kStepsBetweenStops;
  State state = descend();
  while (state != State::kDone) {
    if (path_.empty()) {
      result.exhausted = true;
      break;
    }
    result.steps = skyline_.steps() - start;
    if (result.steps >= limits.steps) break;
    if (result.steps >= ask && limits.stop) {
      if (limits.stop()) break;
      ask += kStepsBetweenStops;
    }
    Branch& branch = path_.back();
    skyline_.undo(branch.mark);
    if (branch.next == branch.last && !branch.may_raise) {
      skyline_.blame(branch.section);
      candidates_.resize(branch.first);
      path_.pop_back();
      continue;
    }
    if (take_next(branch)) state = descend();
  }
  result.steps = skyline_.steps() - start;
  if (state == State::kDone) result.offsets = skyline_.offsets();
  return result;
}

// The next branch below the current state, when there is one.
PackingSearch::State PackingSearch::descend() {
  Branch branch;
  const State state = find_branch(branch);
  if (state != State::kOpen) return state;
  list_candidates(branch);
  branch.mark = skyline_.mark();
  path_.push_back(branch);
  return state;
}

bool PackingSearch::take_next(Branch& branch) {
  if (branch.next < branch.last) return skyline_.put(candidates_[branch.next++], branch.floor);
  branch.may_raise = false;
  return skyline_.raise(branch.section, branch.level);
}

Bytes PackingSearch::height(std::int32_t section) const {
  if (section < 0 || section >= problem_.sections || skyline_.full(section)) return kWall;
  return skyline_.floor(section);
}

PackingSearch::State PackingSearch::find_branch(Branch& best) {
  while (true) {
    if (!skyline_.propagate()) return State::kDead;
    if (skyline_.done()) return State::kDone;
    skyline_.count_steps(problem_.sections);
    bool forced = false;
    best.section = -1;
    for (std::int32_t begin = 0, end = 0; begin < problem_.sections && !forced; begin = end) {
      end = begin + 1;
      if (skyline_.full(begin)) continue;
      Branch branch;
      branch.begin = begin;
      branch.floor = skyline_.floor(begin);
      while (height(end) == branch.floor) ++end;
      branch.end = end;
      branch.wall = std::min(height(begin - 1), height(end));
      if (branch.wall < branch.floor) continue;  // a slope
      for (const bool at_end : {false, true}) {
        branch.at_end = at_end;
        branch.section = at_end ? end - 1 : begin;
        if (!rank(branch)) {
          if (branch.wall == kWall || !skyline_.raise(branch.section, branch.wall)) {
            return State::kDead;
          }
          forced = true;
          break;
        }
        if (best.section < 0 || branch.rank < best.rank) best = branch;
      }
    }
    if (!forced) return State::kOpen;
  }
}

// Those that start, or end, where the branch is.
std::span<const std::int32_t> PackingSearch::items_at(const Branch& branch) const {
  const auto& first = branch.at_end ? first_ending_ : first_starting_;
  const std::size_t where = index(branch.at_end ? branch.end : branch.begin);
  return std::span(branch.at_end ? ending_ : starting_)
      .subspan(first[where], first[where + 1] - first[where]);
}

// How urgent the branch is, lowest first. False when no item can rest on that section's floor.
bool PackingSearch::rank(Branch& branch) {
  int ways = 0;
  const auto items = items_at(branch);
  for (const std::int32_t i : items) {
    const PackItem& item = problem_.items[index(i)];
    if (!skyline_.placed(i) && item.begin >= branch.begin && item.end <= branch.end) ++ways;
  }
  skyline_.count_steps(static_cast<std::int64_t>(items.size()));
  if (ways == 0) return false;
  const Bytes slack = skyline_.slack(branch.section);
  branch.level = branch.wall;
  if (slack > 0) {
    const Bytes smallest = branch.at_end ? smallest_within(branch.begin, branch.end - 1)
                                         : smallest_within(branch.begin + 1, branch.end);
    if (smallest < kWall) branch.level = std::min(branch.level, branch.floor + smallest);
  }
  branch.may_raise = branch.level < kWall && branch.level - branch.floor <= slack;
  const double all_ways = ways + (branch.may_raise ? 1 : 0);
  if (all_ways == 1) {
    branch.rank = -1;
  } else if (choice_ == PlaceChoice::kTightest) {
    branch.rank = static_cast<double>(slack) + all_ways * 1e-3;
  } else {
    branch.rank = all_ways / skyline_.weight(branch.section);
  }
  return true;
}

// Of the items that lie wholly in [begin, end).
Bytes PackingSearch::smallest_within(std::int32_t begin, std::int32_t end) {
  Bytes smallest = kWall;
  if (begin >= end) return smallest;
  const std::size_t last = first_starting_[index(end)];
  for (std::size_t k = first_starting_[index(begin)]; k < last; ++k) {
    const PackItem& item = problem_.items[index(starting_[k])];
    if (!skyline_.placed(starting_[k]) && item.end <= end) {
      smallest = std::min(smallest, item.aligned);
    }
  }
  skyline_.count_steps(static_cast<std::int64_t>(last - first_starting_[index(begin)]));
  return smallest;
}

// Of items that are alike in all respects one is enough.
void PackingSearch::list_candidates(Branch& branch) {
  branch.first = branch.next = candidates_.size();
  for (const std::int32_t i : items_at(branch)) {
    const PackItem& item = problem_.items[index(i)];
    if (skyline_.placed(i) || item.begin < branch.begin || item.end > branch.end) continue;
    const bool seen =
        std::any_of(candidates_.begin() + static_cast<std::ptrdiff_t>(branch.first),
                    candidates_.end(), [&](std::int32_t other) {
                      const PackItem& it = problem_.items[index(other)];
                      return it.begin == item.begin && it.end == item.end && it.bytes == item.bytes;
                    });
    if (!seen) candidates_.push_back(i);
  }
  branch.last = candidates_.size();
}

}  // namespace reprise::planner
