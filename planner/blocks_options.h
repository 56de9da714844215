#pragma once

// What one block of the forward part can save, and what that costs.
//
// A tensor of the block that the backward part reads is kept, or made again: then its op runs a
// second time, and what this op reads must be kept or made again in turn. What later blocks read is
// kept, so blocks do not depend on each other. For a price per byte the best choice is a smallest
// cut:
//
//     source ──∞──▶ needed(t) ──price·bytes(t)──▶ again(op of t) ──cost(op)──▶ sink
//                                                     │
//                                                     └──∞──▶ needed(inputs)
//
// so all choices on the lower convex hull of (bytes kept, cost) are found exactly, whatever the
// size of the block; many blocks together need no others.

#include <cstdint>
#include <vector>

#include "planner/structure.h"

namespace reprise::planner {

struct BlockOp {
  std::int64_t cost = 0;
  bool rerunnable = false;
  std::vector<std::int32_t> inputs;  // tensors of the block
};

struct BlockTensor {
  Bytes bytes = 0;
  std::int32_t op = 0;
  bool needed = false;   // by the backward part
  bool outside = false;  // later blocks read it: always there
  friend bool operator==(const BlockTensor&, const BlockTensor&) = default;
};

// Forward ops [first, last). Their outputs in program order are its tensors.
struct BlockModel {
  std::vector<BlockOp> ops;
  std::vector<BlockTensor> tensors;
  std::uint64_t hash = 0;  // equal for blocks with equal options
};

[[nodiscard]] BlockModel make_block_model(const Structure& structure, Index first, Index last);

struct BlockOption {
  Bytes kept = 0;          // of the block's tensors, until its backward part
  std::int64_t extra = 0;  // cost of what runs again
  Bytes made_again = 0;    // all that is live at most while the block's backward part runs
  std::vector<bool> keep;  // per tensor
};

// By falling `kept` and rising `extra`, each step dearer per byte than the one before; the first
// keeps all that is needed. At most `most` of them, the widest gaps first.
[[nodiscard]] std::vector<BlockOption> hull_of_options(const BlockModel& block, std::size_t most);

}  // namespace reprise::planner
