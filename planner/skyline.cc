#include "planner/skyline.h"

#include <algorithm>
#include <limits>

// In each section: floor + bytes left to place + slack = room. Placing an item on the floor leaves
// the slack alone; raising the floor eats it. Two conclusions follow from where the unplaced items
// of a section can lie at the lowest, which other sections decide:
//   - below the lowest of them nothing will come: the floor goes up there;
//   - stacked in that order, each not below its own lowest offset, they end as low as they can
//     (one machine, release dates): the waste below them must not exceed the slack.

namespace reprise::planner {

Skyline::Skyline(const PackItems& problem, const Conflicts& conflicts)
    : problem_(problem), conflicts_(conflicts) {
  const std::size_t sections = index(problem.sections);
  first_.assign(sections + 1, 0);
  for (const PackItem& item : problem.items) {
    for (std::int32_t s = item.begin; s < item.end; ++s) ++first_[index(s) + 1];
  }
  for (std::size_t s = 0; s < sections; ++s) first_[s + 1] += first_[s];
  members_.resize(first_.back());
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const PackItem& item = problem.items[i];
    for (std::int32_t s = item.begin; s < item.end; ++s) {
      members_[next[index(s)]++] = static_cast<std::int32_t>(i);
    }
  }
  weight_.assign(sections, 1);
  touched_.assign(sections, Touch::kNone);
}

bool Skyline::reset(const std::vector<Bytes>& room, Bytes capacity) {
  const std::size_t sections = index(problem_.sections);
  capacity_ = capacity;
  floor_.assign(sections, 0);
  slack_.resize(sections);
  left_.resize(sections);
  lowest_.assign(problem_.items.size(), 0);
  offsets_.assign(problem_.items.size(), 0);
  placed_.assign(problem_.items.size(), 0);
  stack_.clear();
  floor_trail_.clear();
  lowest_trail_.clear();
  for (std::size_t s = 0; s < sections; ++s) {
    left_[s] = static_cast<std::int32_t>(first_[s + 1] - first_[s]);
    slack_[s] = room[s] - problem_.load[s];
    if (slack_[s] < 0) return false;
  }
  return true;
}

void Skyline::set_floor(std::int32_t section, Bytes floor, Bytes slack) {
  floor_trail_.push_back({section, floor_[index(section)], slack_[index(section)]});
  floor_[index(section)] = floor;
  slack_[index(section)] = slack;
}

void Skyline::touch(std::int32_t section, Touch touch) {
  Touch& known = touched_[index(section)];
  if (known == Touch::kNone) agenda_.push_back(section);
  known = std::max(known, touch);
}

void Skyline::lift(std::int32_t item, Bytes lowest) {
  if (placed(item) || lowest_[index(item)] >= lowest) return;
  const Bytes before = lowest_[index(item)];
  lowest_trail_.push_back({item, before});
  lowest_[index(item)] = lowest;
  const PackItem& it = problem_.items[index(item)];
  for (std::int32_t s = it.begin; s < it.end; ++s) {
    if (before <= floor_[index(s)]) touch(s, Touch::kLifted);
  }
  steps_ += it.end - it.begin;
}

bool Skyline::put(std::int32_t item, Bytes offset) {
  const PackItem& it = problem_.items[index(item)];
  if (offset + it.bytes > capacity_) return false;
  stack_.push_back(item);
  placed_[index(item)] = 1;
  offsets_[index(item)] = offset;
  const Bytes top = offset + it.aligned;
  for (std::int32_t s = it.begin; s < it.end; ++s) {
    const Bytes waste = offset - floor_[index(s)];
    set_floor(s, top, slack_[index(s)] - waste);
    --left_[index(s)];
    touch(s, Touch::kFilled);
  }
  const auto others = conflicts_.of(index(item));
  for (const std::int32_t other : others) lift(other, top);
  steps_ += 2 * std::int64_t{it.end - it.begin} + static_cast<std::int64_t>(others.size());
  return true;
}

bool Skyline::raise(std::int32_t section, Bytes level) {
  const Bytes waste = level - floor_[index(section)];
  if (waste > slack_[index(section)]) {
    blame(section);
    return false;
  }
  set_floor(section, level, slack_[index(section)] - waste);
  for (const std::int32_t item : items_of(section)) lift(item, level);
  return true;
}

bool Skyline::rests_on_floor(std::int32_t section) {
  const auto members = items_of(section);
  const Bytes floor = floor_[index(section)];
  const auto found = std::find_if(members.begin(), members.end(), [&](std::int32_t item) {
    return !placed(item) && lowest_[index(item)] <= floor;
  });
  steps_ += found - members.begin() + 1;
  return found != members.end();
}

bool Skyline::settle(std::int32_t section) {
  by_lowest_.clear();
  const auto members = items_of(section);
  const Bytes floor = floor_[index(section)];
  Bytes reached = floor;  // by those that need not wait
  Bytes lowest_of_all = std::numeric_limits<Bytes>::max();
  for (const std::int32_t item : members) {
    if (placed(item)) continue;
    const Bytes lowest = lowest_[index(item)];
    const Bytes bytes = problem_.items[index(item)].aligned;
    lowest_of_all = std::min(lowest_of_all, lowest);
    if (lowest <= reached) {
      reached += bytes;
    } else {
      by_lowest_.emplace_back(lowest, bytes);
    }
  }
  steps_ += static_cast<std::int64_t>(members.size() + 4 * by_lowest_.size());
  std::sort(by_lowest_.begin(), by_lowest_.end());
  Bytes waste = 0;
  for (const auto& [lowest, bytes] : by_lowest_) {
    if (lowest > reached) {
      waste += lowest - reached;
      reached = lowest;
    }
    reached += bytes;
  }
  if (waste > slack_[index(section)]) {
    blame(section);
    return false;
  }
  if (lowest_of_all > floor) {
    set_floor(section, lowest_of_all, slack_[index(section)] - (lowest_of_all - floor));
  }
  return true;
}

bool Skyline::propagate() {
  bool holds = true;
  for (const std::int32_t section : agenda_) {
    const Touch touch = std::exchange(touched_[index(section)], Touch::kNone);
    if (!holds || full(section)) continue;
    if (touch == Touch::kLifted && rests_on_floor(section)) continue;
    holds = settle(section);
  }
  agenda_.clear();
  return holds;
}

void Skyline::undo(const Mark& to) {
  for (const std::int32_t section : agenda_) touched_[index(section)] = Touch::kNone;
  agenda_.clear();
  for (; lowest_trail_.size() > to.lowest; lowest_trail_.pop_back()) {
    lowest_[index(lowest_trail_.back().item)] = lowest_trail_.back().lowest;
  }
  for (; floor_trail_.size() > to.floors; floor_trail_.pop_back()) {
    const FloorChange& change = floor_trail_.back();
    floor_[index(change.section)] = change.floor;
    slack_[index(change.section)] = change.slack;
  }
  for (; stack_.size() > to.placed; stack_.pop_back()) {
    placed_[index(stack_.back())] = 0;
    const PackItem& it = problem_.items[index(stack_.back())];
    for (std::int32_t s = it.begin; s < it.end; ++s) ++left_[index(s)];
  }
}

}  // namespace reprise::planner
