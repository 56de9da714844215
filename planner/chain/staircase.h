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

// The lower envelope of candidates, each a staircase itself.
class Envelope {
 public:
  explicit Envelope(Bytes cap) : cap_(cap) {}
  void clear() { stairs_.clear(); }

  // One part, shifted: at least `least` bytes, `bytes` beside it, `cost` before it.
  void add(const Staircase& part, Bytes bytes, Bytes least, std::int64_t cost, ChainChoice choice);
  // Two parts in turn, with `first_bytes` and `second_bytes` held beside them.
  void add(const Staircase& first, Bytes first_bytes, const Staircase& second, Bytes second_bytes,
           Bytes least, std::int64_t cost, ChainChoice choice);

  [[nodiscard]] const Staircase& stairs() const { return stairs_; }
  // At most `most` steps; the first and the last one stay, and of each stretch of memory the step
  // that lies lowest against the slope around it.
  void thin_out(std::size_t most);

 private:
  void merge_news();

  Bytes cap_;  // steps above it are of no use
  Staircase stairs_, news_, merged_;
};

}  // namespace reprise::planner
