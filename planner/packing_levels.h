#pragma once

// Search at several levels of detail. Buffers differ by orders of magnitude in size, and a few
// large ones decide how well the arena is filled: a level searches a packing of those alone, with
// the bytes of the small ones set aside, and the small ones go into the gaps afterwards.

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/packing_search.h"
#include "planner/placement.h"

namespace reprise::planner {

class PackingLevel {
 public:
  // Of all items of at least `smallest` bytes.
  PackingLevel(const PackItems& whole, const Conflicts& conflicts, Bytes smallest);

  [[nodiscard]] std::size_t size() const { return large_.size(); }
  [[nodiscard]] bool complete() const { return small_.empty(); }

  struct Attempt {
    std::optional<Placement> placement;  // of all items; may end above the capacity
    bool exhausted = false;              // there is no such packing of the large ones
    std::int64_t steps = 0;
  };
  // `variant` picks one of the ways to search; those from kVariants on are drawn at random from it.
  static constexpr int kVariants = 6;
  [[nodiscard]] Attempt pack_within(Bytes capacity, int variant, std::int64_t steps,
                                    const std::function<bool()>& stop);

 private:
  [[nodiscard]] std::vector<double> priorities(int variant) const;

  const PackItems& whole_;
  const Conflicts& conflicts_;
  std::vector<std::int32_t> large_, small_;  // small ones by falling size
  PackItems items_;                          // the large ones
  std::vector<Bytes> aside_;  // per section of items_: how much the small ones add to the load
  std::optional<Conflicts> meets_;
  std::unique_ptr<PackingSearch> search_;
};

}  // namespace reprise::planner
