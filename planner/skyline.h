#pragma once

// The state of a packing that grows upwards: what has been placed, how high each section is filled,
// and what that leaves for the items still to come. Every change can be undone.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "planner/conflicts.h"

namespace reprise::planner {

class Skyline {
 public:
  Skyline(const PackItems& problem, const Conflicts& conflicts);

  // Nothing placed. Items of section s fit below room[s] together; none ends above `capacity`.
  // False when that cannot hold.
  [[nodiscard]] bool reset(const std::vector<Bytes>& room, Bytes capacity);

  // Puts the item on `offset`, which no floor of its sections exceeds.
  [[nodiscard]] bool put(std::int32_t item, Bytes offset);
  // Nothing more will lie below `level` in that section. False when what is left to place there
  // then has no room.
  [[nodiscard]] bool raise(std::int32_t section, Bytes level);
  // Draws the conclusions from all changes since: floors that nothing can rest on any more go up.
  // False when a section cannot hold its items.
  [[nodiscard]] bool propagate();

  struct Mark {
    std::size_t floors = 0, lowest = 0, placed = 0;
  };
  [[nodiscard]] Mark mark() const {
    return {floor_trail_.size(), lowest_trail_.size(), stack_.size()};
  }
  void undo(const Mark& to);

  [[nodiscard]] bool placed(std::int32_t item) const { return placed_[index(item)] != 0; }
  [[nodiscard]] Bytes floor(std::int32_t section) const { return floor_[index(section)]; }
  [[nodiscard]] Bytes slack(std::int32_t section) const { return slack_[index(section)]; }
  [[nodiscard]] bool full(std::int32_t section) const { return left_[index(section)] == 0; }
  [[nodiscard]] bool done() const { return stack_.size() == placed_.size(); }
  [[nodiscard]] const std::vector<Bytes>& offsets() const { return offsets_; }  // of what is placed

  // Sections where a branch failed weigh more: there the choice matters.
  [[nodiscard]] double weight(std::int32_t section) const { return weight_[index(section)]; }
  void blame(std::int32_t section) { weight_[index(section)] += 1; }

  [[nodiscard]] std::int64_t steps() const { return steps_; }  // effort so far
  void count_steps(std::int64_t steps) { steps_ += steps; }

 private:
  struct FloorChange {
    std::int32_t section;
    Bytes floor, slack;
  };
  struct LowestChange {
    std::int32_t item;
    Bytes lowest;
  };
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] std::span<const std::int32_t> items_of(std::int32_t section) const {
    const std::size_t first = first_[index(section)];
    return std::span(members_).subspan(first, first_[index(section) + 1] - first);
  }
  void set_floor(std::int32_t section, Bytes floor, Bytes slack);
  void lift(std::int32_t item, Bytes lowest);
  enum class Touch : std::uint8_t { kNone, kLifted, kFilled };  // an item that rested here; this
  void touch(std::int32_t section, Touch touch);
  [[nodiscard]] bool rests_on_floor(std::int32_t section);
  [[nodiscard]] bool settle(std::int32_t section);

  const PackItems& problem_;
  const Conflicts& conflicts_;
  std::vector<std::size_t> first_;  // items per section, as one flat table
  std::vector<std::int32_t> members_;
  std::vector<double> weight_;

  Bytes capacity_ = 0;
  std::vector<Bytes> floor_, slack_;  // per section; slack: bytes that may still be wasted
  std::vector<std::int32_t> left_;    // per section: items still to place
  std::vector<Bytes> lowest_;         // per item: above all placed ones that it meets
  std::vector<Bytes> offsets_;
  std::vector<char> placed_;
  std::vector<std::int32_t> stack_;  // placed items
  std::vector<FloorChange> floor_trail_;
  std::vector<LowestChange> lowest_trail_;
  std::vector<Touch> touched_;
  std::vector<std::int32_t> agenda_;                // touched sections
  std::vector<std::pair<Bytes, Bytes>> by_lowest_;  // scratch
  std::int64_t steps_ = 0;
};

}  // namespace reprise::planner
