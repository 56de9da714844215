#pragma once

// The contract between planner and executor: one training step as a straight line of instructions
// over one arena. Plain data; prints, parses, compares with ==. The executor follows it without
// opinions, and verify() (schedule/verify.h) checks it against the prepared graph with no help from
// the planner.

#include <cstdint>
#include <string>
#include <vector>

#include "graph/prepared.h"

namespace reprise::schedule {

using base::Bytes;
using graph::NodeId;
using graph::ValueId;
using SlotId = base::Id<struct SlotTag>;

// One materialization of a value. A value that is computed twice has two slots. `value` is never
// the output of a reshape: readers of a reshaped value read the slot of graph::storage_root(value).
struct Slot {
  ValueId value;
  Bytes offset = 0;  // from the start of the arena; a multiple of graph::kArenaAlignment
  Bytes bytes = 0;   // PreparedGraph::value_bytes of the value
  friend bool operator==(const Slot&, const Slot&) = default;
};

// One run of one node. Reads and writes follow the node's inputs and outputs, one slot each. A
// written slot that has the offset of a read one takes its buffer in place; the pair must be among
// the node's.
struct Instruction {
  NodeId node;
  std::vector<SlotId> reads;
  std::vector<SlotId> writes;
  Bytes workspace_offset = 0;
  Bytes workspace_bytes = 0;   // what the algorithm books
  std::int32_t algorithm = 0;  // of the node's; the same in all its runs
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

struct Schedule {
  Bytes arena_bytes = 0;  // highest end of a slot or workspace, rounded up to kArenaAlignment
  base::IdVector<SlotId, Slot> slots;
  std::vector<Instruction> instructions;
  std::vector<SlotId> entry;  // filled before the first instruction: inputs, persistent values
  std::vector<SlotId> exit;   // intact after the last one: fetched outputs, persistent values
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// The range of instructions over which a slot is live, [start, end): start is the index of its
// writer (0 for entry slots), end is one past its last reader, instructions.size() for exit slots.
// A slot that is written and never read lives for its writer only, an entry slot that is never read
// is [0, 1). Slots may share bytes only where their ranges do not meet, or where one instruction
// hands the bytes on in place.
struct Lifetime {
  std::int64_t start = 0;
  std::int64_t end = 0;
};
// The schedule names slots of its table only (CHECKed).
[[nodiscard]] base::IdVector<SlotId, Lifetime> slot_lifetimes(const Schedule& schedule);

// A schedule together with the graph it runs: what a plan file holds.
struct PlannedStep {
  graph::PreparedGraph prepared;
  Schedule schedule;
  // How it came about; free text fields of the file, shown by `reprise show`.
  std::string planner;
  Bytes budget_bytes = 0;
  friend bool operator==(const PlannedStep&, const PlannedStep&) = default;
};

}  // namespace reprise::schedule
