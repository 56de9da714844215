#include "schedule/verify.h"

#include "schedule/verify_report.h"

namespace reprise::schedule {

const char* rule_name(Rule rule) {
  switch (rule) {
    case Rule::kUnknownId:
      return "unknown_id";
    case Rule::kAlgorithm:
      return "algorithm";
    case Rule::kArity:
      return "arity";
    case Rule::kSlotValue:
      return "slot_value";
    case Rule::kSlotBytes:
      return "slot_bytes";
    case Rule::kAlignment:
      return "alignment";
    case Rule::kOutsideArena:
      return "outside_arena";
    case Rule::kWorkspaceBytes:
      return "workspace_bytes";
    case Rule::kWrittenTwice:
      return "written_twice";
    case Rule::kReadBeforeWrite:
      return "read_before_write";
    case Rule::kStaleRead:
      return "stale_read";
    case Rule::kOverlap:
      return "overlap";
    case Rule::kInplaceNotLegal:
      return "inplace_not_legal";
    case Rule::kInplaceRequired:
      return "inplace_required";
    case Rule::kNotRun:
      return "not_run";
    case Rule::kRunTwice:
      return "run_twice";
    case Rule::kEntry:
      return "entry";
    case Rule::kExit:
      return "exit";
    case Rule::kUpdateEarly:
      return "update_early";
    case Rule::kRecomputeDiffers:
      return "recompute_differs";
    case Rule::kAlgorithmDiffers:
      return "algorithm_differs";
    case Rule::kPeak:
      return "peak";
    case Rule::kBudget:
      return "budget";
  }
  return "unknown rule";
}

VerifyReport::VerifyReport(const graph::PreparedGraph& prepared_graph,
                           const Schedule& checked_schedule, std::size_t limit)
    : prepared(prepared_graph),
      graph(prepared_graph.graph),
      schedule(checked_schedule),
      limit_(limit),
      roots_(graph.values.size()) {
  REPRISE_CHECK(prepared.value_bytes.size() == graph.values.size() &&
                    prepared.nodes.size() == graph.nodes.size(),
                "a prepared graph of {} values and {} nodes has facts of {} and {}",
                graph.values.size(), graph.nodes.size(), prepared.value_bytes.size(),
                prepared.nodes.size());
  for (std::size_t i = 0; i < graph.values.size(); ++i) roots_[ValueId(i)] = ValueId(i);
  for (const graph::Node& node : graph.nodes) {
    if (node.op == graph::OpKind::kReshape) roots_[node.outputs.at(0)] = roots_[node.inputs.at(0)];
  }
}

const std::string& VerifyReport::value_name(ValueId value) const {
  return graph.values.at(value).name;
}

std::string VerifyReport::slot_name(SlotId slot) const {
  const Slot& s = schedule.slots.at(slot);
  const ByteRange range = range_of(s);
  return fmt::format("slot {} ('{}', bytes [{}, {}))", slot.index(), value_name(s.value),
                     range.begin, range.end);
}

std::string VerifyReport::step_name(std::int64_t instruction) const {
  const NodeId node = schedule.instructions.at(static_cast<std::size_t>(instruction)).node;
  if (!graph.nodes.contains(node)) return fmt::format("step {}", instruction);
  return fmt::format("step {} '{}'", instruction, graph.nodes[node].name);
}

std::string describe_overwriter(const VerifyReport& report, const ByteOwners& owners, SlotId slot) {
  for (const ByteOwners::Piece& piece : owners.pieces(range_of(report.schedule.slots[slot]))) {
    if (piece.owner == slot) continue;
    const std::string bytes = fmt::format("[{}, {})", piece.range.begin, piece.range.end);
    if (!piece.owner.valid()) return "a workspace took bytes " + bytes;
    return report.slot_name(piece.owner) + " took bytes " + bytes;
  }
  return "nothing changed";
}

std::vector<Violation> verify(const graph::PreparedGraph& prepared, const Schedule& schedule,
                              std::size_t limit) {
  VerifyReport report(prepared, schedule, limit);
  verify_ids(report);
  if (!report.empty()) return report.take();
  verify_tables(report);
  verify_end(report, verify_replay(report));
  return report.take();
}

std::vector<Violation> verify(const PlannedStep& step, std::size_t limit) {
  std::vector<Violation> violations = verify(step.prepared, step.schedule, limit);
  const Bytes arena = step.schedule.arena_bytes;
  if (arena > step.budget_bytes && violations.size() < limit) {
    violations.push_back(
        {Rule::kBudget, -1,
         fmt::format("the arena has {} bytes; the budget is {}", arena, step.budget_bytes)});
  }
  return violations;
}

}  // namespace reprise::schedule
