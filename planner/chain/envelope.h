#pragma once

// The lower envelope of candidates, each a staircase or the sum of two.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "planner/chain/staircase.h"

namespace reprise::planner {

class Envelope {
 public:
  // Steps above `cap` are of no use.
  Envelope(Bytes cap, const MemoryCells& cells) : cap_(cap), cells_(cells) {}
  void clear();

  // One step.
  void add(Bytes memory, std::int64_t cost, ChainChoice choice);
  // One part, shifted: at least `least` bytes, `bytes` beside it, `cost` before it.
  void add(const Staircase& part, Bytes bytes, Bytes least, std::int64_t cost, ChainChoice choice);
  // Two parts in turn, with `bytes` held beside each.
  struct Part {
    const CellStaircase& stairs;
    Bytes bytes = 0;
  };
  void add(Part first, Part second, Bytes least, std::int64_t cost, ChainChoice choice);

  // Of equal candidates the one that was added first.
  [[nodiscard]] const Staircase& stairs() const { return stairs_; }

 private:
  struct Run {
    std::int32_t begin, end;  // cells
  };
  void find_runs(Part first, Part second, std::int64_t cost, std::int32_t begin, std::int32_t end);
  template <class Cost>
  void scan(std::int32_t begin, std::int32_t end, Cost cost);
  void collect(Part first, Part second, Bytes memory, Bytes last, std::int64_t cost,
               ChainChoice choice);
  void merge_news();
  void cover(std::int32_t cell);
  void summarize(std::int32_t cell, std::size_t settled, std::ptrdiff_t moved);

  Bytes cap_;
  MemoryCells cells_;
  Staircase stairs_, news_, merged_;
  // Per cell, up to that of the last step at least: what its first byte costs at most, and how many
  // steps lie below it.
  std::vector<float> most_;
  std::vector<std::uint32_t> before_;
  std::vector<Run> runs_;  // cells in which a candidate may lie below
};

}  // namespace reprise::planner
