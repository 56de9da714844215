#pragma once

// What a stretch of the chain costs as a function of the memory it gets: a falling staircase. A
// step holds the smallest memory at which its cost is reached, and the choice that reaches it.

#include <cstdint>
#include <limits>
#include <vector>

#include "planner/chain/chain.h"

namespace reprise::planner {

enum class ChainMove : std::uint8_t {
  kLeaf,        // the loss, or one stage forward and backward
  kRecord,      // Fall of the first stage; its record waits for the rest
  kRecordMany,  // Fall of several stages, option 0
  kCheckpoint,  // on to x_split, which waits as a checkpoint; what lies before is run again later
  kDropInput,   // on to stage `split`; its record waits, its input does not
};

struct ChainChoice {
  ChainMove move = ChainMove::kLeaf;
  std::int16_t option = 0;
  std::int32_t split = 0;  // stage; for kRecordMany the first one that is not recorded
};

struct StairStep {
  Bytes memory = 0;
  std::int64_t cost = 0;
  ChainChoice choice;
};

// Memory rising, cost falling, both strictly.
using Staircase = std::vector<StairStep>;

// The last step within the memory; null when there is none.
[[nodiscard]] const StairStep* step_within(const Staircase& stairs, Bytes memory);

// At most `most` steps; the first and the last one stay, and of each stretch of memory the step
// that lies lowest against the slope around it.
[[nodiscard]] Staircase thin_out(const Staircase& stairs, std::size_t most);

// Memory cut into cells of equal width.
class MemoryCells {
 public:
  // At least `count` cells up to `cap`, less than twice as many; fewer where bytes are.
  MemoryCells(Bytes cap, std::int64_t count) {
    while ((cap >> shift_) >= 2 * count) ++shift_;
  }
  [[nodiscard]] std::int32_t of(Bytes memory) const {
    return static_cast<std::int32_t>(memory >> shift_);
  }
  [[nodiscard]] Bytes begin(std::int32_t cell) const { return Bytes{cell} << shift_; }

 private:
  int shift_ = 0;
};

// A staircase with a summary by cells, from that of its first step to that of its last.
struct CellStaircase {
  CellStaircase() = default;
  CellStaircase(Staircase stairs, const MemoryCells& cells);

  Staircase steps;
  std::int32_t first_cell = 0;
  std::vector<float> least;           // no memory of the cell or below costs less
  std::vector<std::uint32_t> before;  // number of steps below the cell
};

}  // namespace reprise::planner
