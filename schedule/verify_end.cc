// The rules at the end of the replay: needed nodes ran, exit slots are intact and where they
// belong.

#include <map>
#include <optional>
#include <string>

#include "schedule/verify_report.h"

namespace reprise::schedule {
namespace {

void check_needed_nodes(VerifyReport& report, const ReplayEnd& end) {
  const graph::Graph& graph = report.graph;
  std::map<NodeId, std::string> needed;
  for (ValueId value : graph.outputs) {
    const NodeId node = graph.values[report.root(value)].producer;
    if (node.valid()) needed[node] = fmt::format("output '{}'", report.value_name(value));
  }
  for (const graph::Update& update : graph.updates) {
    const NodeId node = graph.values[report.root(update.final)].producer;
    if (node.valid()) {
      needed[node] = fmt::format("update of '{}'", report.value_name(update.initial));
    }
  }
  for (const auto& [node, why] : needed) {
    if (end.runs[node] > 0) continue;
    report.add(Rule::kNotRun, -1, "node '{}' never runs; it makes the {}", graph.nodes[node].name,
               why);
  }
}

// The values that exit must hold; for persistent ones with the offset of the first version.
std::map<ValueId, std::optional<Bytes>> wanted_at_exit(const VerifyReport& report) {
  const graph::Graph& graph = report.graph;
  std::map<ValueId, ValueId> last_version;
  for (const graph::Update& update : graph.updates) last_version[update.initial] = update.final;
  std::map<ValueId, Bytes> entry_offsets;
  for (SlotId slot : report.schedule.entry) {
    const Slot& s = report.schedule.slots[slot];
    entry_offsets[s.value] = s.offset;
  }
  std::map<ValueId, std::optional<Bytes>> wanted;
  for (ValueId value : graph.outputs) wanted[report.root(value)];
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const ValueId first(i);
    const graph::Value& value = graph.values[first];
    if (value.producer.valid() || !graph::is_persistent(value.role)) continue;
    const auto last = last_version.find(first);
    const ValueId at_end = last == last_version.end() ? first : report.root(last->second);
    std::optional<Bytes>& offset = wanted[at_end];
    if (const auto entry = entry_offsets.find(first); entry != entry_offsets.end()) {
      offset = entry->second;
    }
  }
  return wanted;
}

void check_exit_slot(VerifyReport& report, const ReplayEnd& end, SlotId slot,
                     std::optional<Bytes> offset) {
  const Slot& s = report.schedule.slots[slot];
  if (offset && *offset != s.offset) {
    report.add(Rule::kExit, -1, "exit {}: the first version of that value lies at {}",
               report.slot_name(slot), *offset);
  }
  if (!end.written[slot]) {
    report.add(Rule::kExit, -1, "exit {} is never written", report.slot_name(slot));
  } else if (!end.owners.all_owned(range_of(s), slot)) {
    report.add(Rule::kExit, -1, "exit {} is not intact at the end: {}", report.slot_name(slot),
               describe_overwriter(report, end.owners, slot));
  }
}

void check_exit(VerifyReport& report, const ReplayEnd& end) {
  const std::map<ValueId, std::optional<Bytes>> wanted = wanted_at_exit(report);
  std::map<ValueId, int> found;
  for (SlotId slot : report.schedule.exit) {
    const ValueId value = report.schedule.slots[slot].value;
    ++found[value];
    if (const auto want = wanted.find(value); want != wanted.end()) {
      check_exit_slot(report, end, slot, want->second);
    } else {
      report.add(Rule::kExit, -1,
                 "exit {} is neither fetched nor the last version of a persistent value",
                 report.slot_name(slot));
    }
  }
  for (const auto& [value, offset] : wanted) {
    if (found[value] == 1) continue;
    report.add(Rule::kExit, -1, "'{}' has {} exit slots; it needs one", report.value_name(value),
               found[value]);
  }
}

}  // namespace

void verify_end(VerifyReport& report, const ReplayEnd& end) {
  check_needed_nodes(report, end);
  check_exit(report, end);
}

}  // namespace reprise::schedule
