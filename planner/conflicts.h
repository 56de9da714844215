#pragma once

// Buffers reduced to what a packer compares: sizes rounded up to the alignment, times renumbered
// densely into sections, and who meets whom.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace reprise::planner {

using base::Bytes;

// A section is a stretch of time between two neighbouring starts. An item is live on the sections
// [begin, end).
struct PackItem {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  Bytes bytes = 0;    // > 0, what it needs
  Bytes aligned = 0;  // what it takes from the one above it: bytes, rounded up
};

struct PackItems {
  std::vector<PackItem> items;
  std::int32_t sections = 0;
  std::vector<Bytes> load;  // sum of aligned bytes per section
  Bytes slack = 0;          // largest difference of aligned and needed bytes
  Bytes alignment = 1;
  Bytes step = 1;         // arenas of all packings differ by multiples of it
  Bytes lower_bound = 0;  // largest load, less the slack that the topmost item may save
};

// `times` are the items' [start, end) on any clock.
struct TimeRange {
  std::int64_t start = 0;
  std::int64_t end = 0;
};
[[nodiscard]] PackItems make_pack_items(const std::vector<TimeRange>& times,
                                        const std::vector<Bytes>& bytes, Bytes alignment);

// For each item the items whose ranges meet its own, as one flat table.
class Conflicts {
 public:
  // Nothing when there would be more than `limit` pairs. O(n log n + pairs).
  [[nodiscard]] static std::optional<Conflicts> find(const std::vector<PackItem>& items,
                                                     std::int64_t limit);
  [[nodiscard]] std::span<const std::int32_t> of(std::size_t item) const {
    return std::span(others_).subspan(first_[item], first_[item + 1] - first_[item]);
  }

  [[nodiscard]] std::int64_t pairs() const { return static_cast<std::int64_t>(others_.size() / 2); }

 private:
  std::vector<std::size_t> first_;
  std::vector<std::int32_t> others_;
};

}  // namespace reprise::planner
