// The rules that need no replay: ids, arities, single slots, entry, the size of the arena.

#include <algorithm>
#include <string_view>
#include <vector>

#include "schedule/verify_report.h"

namespace reprise::schedule {
namespace {

void check_slot_ids(VerifyReport& report, std::int64_t instruction, std::string_view what,
                    const std::vector<SlotId>& slots) {
  for (SlotId slot : slots) {
    if (report.schedule.slots.contains(slot)) continue;
    report.add(Rule::kUnknownId, instruction, "{} slot {}; the schedule has {} slots", what,
               slot.index(), report.schedule.slots.size());
  }
}

void check_arity(VerifyReport& report, std::int64_t instruction, std::string_view what,
                 std::size_t slots, std::string_view values, std::size_t count) {
  if (slots == count) return;
  report.add(Rule::kArity, instruction, "{} {} slots; the node has {} {}", what, slots, count,
             values);
}

void check_slot(VerifyReport& report, SlotId id) {
  const Slot& slot = report.schedule.slots[id];
  const ValueId root = report.root(slot.value);
  if (root != slot.value) {
    report.add(Rule::kSlotValue, -1, "{} holds a reshaped view; its bytes are those of '{}'",
               report.slot_name(id), report.value_name(root));
  }
  const Bytes bytes = report.prepared.value_bytes[slot.value];
  if (slot.bytes != bytes) {
    report.add(Rule::kSlotBytes, -1, "{} has {} bytes; '{}' takes {}", report.slot_name(id),
               slot.bytes, report.value_name(slot.value), bytes);
  }
  if (slot.offset % graph::kArenaAlignment != 0) {
    report.add(Rule::kAlignment, -1, "{} starts at {}, which is no multiple of {}",
               report.slot_name(id), slot.offset, graph::kArenaAlignment);
  }
  if (slot.offset < 0 || range_of(slot).end > report.schedule.arena_bytes) {
    report.add(Rule::kOutsideArena, -1, "{} leaves the arena of {} bytes", report.slot_name(id),
               report.schedule.arena_bytes);
  }
}

// One entry slot for each value that no node makes, and for no other.
void check_entry(VerifyReport& report) {
  const Schedule& schedule = report.schedule;
  std::vector<int> count(report.graph.values.size(), 0);
  for (SlotId id : schedule.entry) {
    const ValueId value = schedule.slots[id].value;
    ++count[value.index()];
    if (report.graph.values[value].producer.valid()) {
      report.add(Rule::kEntry, -1, "{} is an entry slot, but a node makes its value",
                 report.slot_name(id));
    }
  }
  for (std::size_t i = 0; i < count.size(); ++i) {
    const graph::Value& value = report.graph.values[ValueId(i)];
    if (value.producer.valid() || count[i] == 1) continue;
    report.add(Rule::kEntry, -1, "{} '{}' has {} entry slots; it needs one", role_name(value.role),
               value.name, count[i]);
  }
}

void check_peak(VerifyReport& report) {
  Bytes highest = 0;
  for (const Slot& slot : report.schedule.slots) {
    if (slot.bytes > 0) highest = std::max(highest, range_of(slot).end);
  }
  for (const Instruction& at : report.schedule.instructions) {
    if (at.workspace_bytes <= 0) continue;
    highest = std::max(highest, range_of(at.workspace_offset, at.workspace_bytes).end);
  }
  // Rounded up without leaving the type: what is wrong by so much is reported in any case.
  const Bytes rest = highest % graph::kArenaAlignment;
  if (rest != 0 && highest < (Bytes{1} << 62)) highest += graph::kArenaAlignment - rest;
  if (report.schedule.arena_bytes == highest) return;
  report.add(Rule::kPeak, -1, "the arena has {} bytes; slots and workspaces reach up to {}",
             report.schedule.arena_bytes, highest);
}

}  // namespace

void verify_ids(VerifyReport& report) {
  const Schedule& schedule = report.schedule;
  const graph::Graph& graph = report.graph;
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    const ValueId value = schedule.slots[SlotId(i)].value;
    if (graph.values.contains(value)) continue;
    report.add(Rule::kUnknownId, -1, "slot {} holds value {}; the graph has {} values", i,
               value.index(), graph.values.size());
  }
  check_slot_ids(report, -1, "entry names", schedule.entry);
  check_slot_ids(report, -1, "exit names", schedule.exit);
  for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
    const Instruction& at = schedule.instructions[i];
    const auto step = static_cast<std::int64_t>(i);
    check_slot_ids(report, step, "reads", at.reads);
    check_slot_ids(report, step, "writes", at.writes);
    if (!graph.nodes.contains(at.node)) {
      report.add(Rule::kUnknownId, step, "runs node {}; the graph has {} nodes", at.node.index(),
                 graph.nodes.size());
      continue;
    }
    const graph::Node& node = graph.nodes[at.node];
    check_arity(report, step, "reads", at.reads.size(), "inputs", node.inputs.size());
    check_arity(report, step, "writes", at.writes.size(), "outputs", node.outputs.size());
    const std::size_t algorithms = report.prepared.nodes[at.node].algorithms();
    if (at.algorithm < 0 || static_cast<std::size_t>(at.algorithm) >= algorithms) {
      report.add(Rule::kAlgorithm, step, "runs algorithm {}; the node has {}, counted from 0",
                 at.algorithm, algorithms);
    }
  }
}

void verify_tables(VerifyReport& report) {
  for (std::size_t i = 0; i < report.schedule.slots.size(); ++i) check_slot(report, SlotId(i));
  check_entry(report);
  check_peak(report);
}

}  // namespace reprise::schedule
