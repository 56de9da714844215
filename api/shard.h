#pragma once

// Which items of a global batch are one rank's, as torch.chunk cuts: parts of ceil(items / ranks),
// the last ones smaller or empty.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace reprise::api {

struct Shard {
  std::int64_t rank = 0, ranks = 1;

  // What a rank plans for; what it has less of items is padding.
  [[nodiscard]] std::int64_t planned(std::int64_t items) const {
    return (items + ranks - 1) / ranks;
  }
  [[nodiscard]] std::int64_t begin(std::int64_t items) const {
    return std::min(items, rank * planned(items));
  }
  [[nodiscard]] std::int64_t end(std::int64_t items) const {
    return std::min(items, (rank + 1) * planned(items));
  }
  [[nodiscard]] std::int64_t count(std::int64_t items) const { return end(items) - begin(items); }
  // Of every rank, in order.
  [[nodiscard]] std::vector<std::int64_t> counts(std::int64_t items) const {
    std::vector<std::int64_t> all;
    for (std::int64_t each = 0; each < ranks; ++each)
      all.push_back(Shard{each, ranks}.count(items));
    return all;
  }
};

}  // namespace reprise::api
