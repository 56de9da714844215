#pragma once

// Which items of a global batch are one rank's, and which of these are in which micro-batch. Ranks
// are cut as torch.chunk cuts: parts of ceil(items / ranks), the last ones smaller or empty; and so
// is what a rank plans for. What a micro-batch has less of items than planned is padding.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace reprise::api {

struct Shard {
  std::int64_t rank = 0, ranks = 1;
  std::int64_t micro_batches = 1;

  // All micro-batches of the rank together.
  [[nodiscard]] Shard of_rank() const { return {.rank = rank, .ranks = ranks}; }
  // What a rank plans for, and what it plans for in one micro-batch.
  [[nodiscard]] std::int64_t planned_by_rank(std::int64_t items) const {
    return (items + ranks - 1) / ranks;
  }
  [[nodiscard]] std::int64_t planned(std::int64_t items) const {
    return (planned_by_rank(items) + micro_batches - 1) / micro_batches;
  }
  [[nodiscard]] std::int64_t begin(std::int64_t items, std::int64_t micro_batch = 0) const {
    return std::min(end_of_rank(items),
                    rank * planned_by_rank(items) + micro_batch * planned(items));
  }
  [[nodiscard]] std::int64_t end(std::int64_t items, std::int64_t micro_batch = 0) const {
    return std::min(end_of_rank(items),
                    rank * planned_by_rank(items) + (micro_batch + 1) * planned(items));
  }
  [[nodiscard]] std::int64_t count(std::int64_t items, std::int64_t micro_batch = 0) const {
    return end(items, micro_batch) - begin(items, micro_batch);
  }
  // Of every rank, in order.
  [[nodiscard]] std::vector<std::int64_t> counts(std::int64_t items,
                                                 std::int64_t micro_batch = 0) const {
    std::vector<std::int64_t> all;
    for (std::int64_t each = 0; each < ranks; ++each) {
      const Shard shard{.rank = each, .ranks = ranks, .micro_batches = micro_batches};
      all.push_back(shard.count(items, micro_batch));
    }
    return all;
  }

 private:
  [[nodiscard]] std::int64_t end_of_rank(std::int64_t items) const {
    return std::min(items, (rank + 1) * planned_by_rank(items));
  }
};

}  // namespace reprise::api
