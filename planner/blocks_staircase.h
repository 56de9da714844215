#pragma once

// From options of single blocks to choices for all of them together.
//
// All blocks start by keeping what is needed. Steps from one option to the next are taken in order
// of their price per byte; of equal steps, as repeated layers have them, those of the earlier
// blocks come first: their backward part runs last, when the memory of later blocks is free again.
// So a choice for the whole graph is a number of steps, and all but one layer of each kind lie on
// the hull.

#include <vector>

#include "planner/blocks_options.h"
#include "planner/decision.h"
#include "planner/period.h"

namespace reprise::planner {

class Staircase {
 public:
  // `group` blocks of a run at a time are one block: what crosses between them may be made again.
  Staircase(const Structure& structure, const std::vector<Block>& blocks, Index group);

  [[nodiscard]] Index blocks() const { return static_cast<Index>(parts_.size()); }
  [[nodiscard]] std::size_t kinds() const { return kinds_.size(); }
  [[nodiscard]] Index steps() const { return static_cast<Index>(steps_.size()); }
  [[nodiscard]] std::int64_t extra(Index steps) const {
    return extra_[static_cast<std::size_t>(steps)];
  }
  // Of activations: what all blocks keep, or what the blocks up to one keep while its backward part
  // runs, with what that makes again. O(blocks + steps).
  [[nodiscard]] Bytes activations(Index steps) const;
  // The fewest steps for which activations() is within `bytes`; steps() + 1 when none is found.
  [[nodiscard]] Index steps_within(Bytes bytes) const;
  // `slots` of the borders between blocks are held at a time; blocks() holds all.
  [[nodiscard]] Decision decide(Index steps, Index slots) const;

 private:
  struct Part {
    Index first, last;
    std::size_t kind;
  };
  struct Step {
    double price;  // cost per byte
    Index part;
    Index option;  // the one it leads to
  };
  void add_part(Index first, Index last);
  void order_steps();
  void find_smallest();
  [[nodiscard]] std::vector<Index> options_after(Index steps) const;
  [[nodiscard]] const BlockOption& option(Index part, Index index) const;

  const Structure& structure_;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> hashes_;            // per kind
  std::vector<std::vector<BlockOption>> kinds_;  // options of each distinct block
  std::vector<Step> steps_;
  std::vector<std::int64_t> extra_;
  Index smallest_ = 0;  // steps with about the fewest activations
};

}  // namespace reprise::planner
