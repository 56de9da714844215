#pragma once

// Depth-first search for a packing within a given capacity.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "planner/conflicts.h"
#include "planner/skyline.h"

namespace reprise::planner {

// Which of the places where something can go next is decided first.
enum class PlaceChoice : std::uint8_t {
  kTightest,  // where the fewest bytes may be wasted
  kFewest,    // where there are the fewest ways to go on, in relation to the failures seen there
};

// One run after the other, as restarts: where branches failed is remembered.
class PackingSearch {
 public:
  PackingSearch(const PackItems& problem, const Conflicts& conflicts);

  struct Limits {
    std::vector<Bytes> room;  // per section: what all its items must fit below
    Bytes capacity = 0;       // what each item must end below
    std::int64_t steps = 0;   // effort: elementary steps, about a nanosecond each
    std::function<bool()> stop{};
  };
  struct Result {
    std::optional<std::vector<Bytes>> offsets;
    bool exhausted = false;  // no packing within the limits exists
    std::int64_t steps = 0;
  };
  // Tries items of higher priority first.
  [[nodiscard]] Result run(const std::vector<double>& priority, PlaceChoice choice,
                           const Limits& limits);

 private:
  // A valley is a run of sections at one floor between higher ones. The branch is over what comes
  // to lie on its first or last section: an item that ends there and fits between the walls, or,
  // with `may_raise`, nothing below `level`.
  struct Branch {
    std::int32_t begin = 0, end = 0;  // of the valley
    Bytes floor = 0, wall = 0;        // of the valley; the lower wall
    bool at_end = false;              // over its last section rather than its first
    std::int32_t section = -1;
    Bytes level = 0;
    bool may_raise = false;
    double rank = 0;
    std::size_t first = 0, next = 0, last = 0;  // into candidates_
    Skyline::Mark mark;
  };
  enum class State : std::uint8_t { kDead, kDone, kOpen };

  void sort_by(const std::vector<double>& priority);
  [[nodiscard]] State descend();
  [[nodiscard]] State find_branch(Branch& best);
  [[nodiscard]] bool rank(Branch& branch);
  [[nodiscard]] Bytes height(std::int32_t section) const;
  [[nodiscard]] std::span<const std::int32_t> items_at(const Branch& branch) const;
  [[nodiscard]] Bytes smallest_within(std::int32_t begin, std::int32_t end);
  void list_candidates(Branch& branch);
  [[nodiscard]] bool take_next(Branch& branch);

  const PackItems& problem_;
  Skyline skyline_;
  PlaceChoice choice_ = PlaceChoice::kTightest;
  std::vector<std::size_t> first_starting_, first_ending_;
  std::vector<std::int32_t> starting_, ending_;  // items per section, by priority
  std::vector<Branch> path_;
  std::vector<std::int32_t> candidates_;
};

}  // namespace reprise::planner
