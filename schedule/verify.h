#pragma once

// The verifier: is this schedule a correct execution of this graph inside this arena? It shares no
// code with planner, simulator or executor (not even slot_lifetimes), prefers the slow and obvious
// way, and names the offenders. One code per rule; each has a negative test.

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace reprise::schedule {

enum class Rule : std::uint8_t {
  kUnknownId,        // a node, value or slot index outside its table
  kAlgorithm,        // an algorithm that the node does not have
  kArity,            // reads or writes do not match the node's inputs and outputs
  kSlotValue,        // a read or written slot holds another value than the node's
  kSlotBytes,        // a slot's bytes differ from the prepared graph's
  kAlignment,        // an offset is not a multiple of the arena alignment
  kOutsideArena,     // a slot or workspace reaches beyond arena_bytes, or starts below 0
  kWorkspaceBytes,   // workspace differs from what the node's algorithm books
  kWrittenTwice,     // a slot is written twice, or is both an entry slot and written
  kReadBeforeWrite,  // a slot is read before it is written and is no entry slot
  kStaleRead,        // a read slot's bytes were overwritten since it was written
  kOverlap,          // an instruction's writes or workspace overlap a live slot or each other
  kInplaceNotLegal,  // bytes shared between a read and a write that the node does not allow, or the
                     // read slot is used later, or offsets or bytes differ
  kInplaceRequired,  // a forced in-place pair has different offsets
  kNotRun,           // a node whose effect is needed (update, fetched output) never runs
  kRunTwice,         // a node that is not recomputable runs twice
  kEntry,  // an input or persistent value lacks its one entry slot, or a made value has one
  kExit,   // a fetched output or persistent value is not intact at the end, or the last version
           // of a persistent value does not lie where the first one did
  kUpdateEarly,  // a parameter is updated before all gradients are made, and the graph wants that
  kRecomputeDiffers,  // a repeated run reads another version of a value than the first run did
  kAlgorithmDiffers,  // a repeated run uses another algorithm than the first run did
  kPeak,              // arena_bytes is not the highest byte used, rounded up to the alignment
  kBudget,            // arena_bytes is more than the budget of the planned step
};

[[nodiscard]] const char* rule_name(Rule rule);  // "overlap"

struct Violation {
  Rule rule;
  std::int64_t instruction = -1;  // -1: not tied to one
  std::string message;            // the step, node, values, slots and bytes
};

// All violations, at most `limit`: those of the tables, then in order of instructions, then those
// of the end. Empty: the schedule is correct. Unknown ids, unknown algorithms and wrong arities
// are reported alone, since a schedule with them cannot be replayed.
[[nodiscard]] std::vector<Violation> verify(const graph::PreparedGraph& prepared,
                                            const Schedule& schedule, std::size_t limit = 20);
// The same, and that the schedule keeps to the step's budget.
[[nodiscard]] std::vector<Violation> verify(const PlannedStep& step, std::size_t limit = 20);

}  // namespace reprise::schedule
