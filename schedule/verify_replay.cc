// The schedule replayed over a map from bytes to the slot that wrote them last. A slot is intact
// while it owns all of its bytes; it is needed up to its last reader, or to the end. Every rule of
// the execution is a question to these two.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/verify_report.h"

namespace reprise::schedule {
namespace {

class Replay {
 public:
  explicit Replay(VerifyReport& report)
      : report_(report),
        schedule_(report.schedule),
        steps_(static_cast<std::int64_t>(schedule_.instructions.size())),
        written_(schedule_.slots.size(), false),
        needed_until_(schedule_.slots.size(), -1),
        runs_(report.graph.nodes.size(), 0),
        first_runs_(report.graph.nodes.size()) {}

  ReplayEnd run() {
    find_last_uses();
    find_awaited();
    fill_entry();
    for (std::int64_t step = 0; step < steps_ && !report_.full(); ++step) {
      const Instruction& at = schedule_.instructions[static_cast<std::size_t>(step)];
      check_values(step, at);
      check_reads(step, at);
      check_workspace(step, at);
      check_writes(step, at);
      check_forced_pairs(step, at);
      check_repetition(step, at);
      check_update(step, at);
      execute(at);
    }
    return {std::move(owners_), std::move(written_), std::move(runs_)};
  }

 private:
  const graph::Node& node_of(const Instruction& at) const { return report_.graph.nodes[at.node]; }
  ByteRange range(SlotId slot) const { return range_of(schedule_.slots[slot]); }
  bool intact(SlotId slot) const { return owners_.all_owned(range(slot), slot); }
  static bool contains(const std::vector<SlotId>& slots, SlotId slot) {
    return std::find(slots.begin(), slots.end(), slot) != slots.end();
  }

  void find_last_uses() {
    for (std::int64_t step = 0; step < steps_; ++step) {
      for (SlotId slot : schedule_.instructions[static_cast<std::size_t>(step)].reads) {
        needed_until_[slot] = step;
      }
    }
    for (SlotId slot : schedule_.exit) needed_until_[slot] = steps_;
  }

  std::string last_use(SlotId slot) const {
    if (needed_until_[slot] == steps_) return "must be intact at the end";
    return "is read at " + report_.step_name(needed_until_[slot]);
  }

  // All of entry is filled before the first instruction, in no order that a schedule knows of.
  void fill_entry() {
    for (SlotId slot : schedule_.entry) {
      if (written_[slot]) {
        report_.add(Rule::kWrittenTwice, -1, "{} is listed twice as an entry slot",
                    report_.slot_name(slot));
      }
      for (SlotId other : owners_in(range(slot))) {
        if (other == slot) continue;
        report_.add(Rule::kOverlap, -1, "entry {} overlaps entry {}", report_.slot_name(slot),
                    report_.slot_name(other));
      }
      written_[slot] = true;
      owners_.write(range(slot), slot);
    }
  }

  std::set<SlotId> owners_in(const ByteRange& bytes) const {
    std::set<SlotId> found;
    for (const ByteOwners::Piece& piece : owners_.pieces(bytes)) {
      if (piece.owner.valid()) found.insert(piece.owner);
    }
    return found;
  }

  // -- does the instruction speak of the node's values?

  void check_values(std::int64_t step, const Instruction& at) {
    const graph::Node& node = node_of(at);
    if (node.op == graph::OpKind::kReshape) {
      report_.add(Rule::kSlotValue, step, "a reshape copies nothing and never runs");
    }
    for (std::size_t i = 0; i < at.reads.size(); ++i) {
      check_value(step, "reads", at.reads[i], report_.root(node.inputs[i]));
    }
    for (std::size_t i = 0; i < at.writes.size(); ++i) {
      check_value(step, "writes", at.writes[i], node.outputs[i]);
    }
  }

  void check_value(std::int64_t step, const char* what, SlotId slot, ValueId value) {
    if (schedule_.slots[slot].value == value) return;
    report_.add(Rule::kSlotValue, step, "{} {}; the node {} '{}'", what, report_.slot_name(slot),
                what, report_.value_name(value));
  }

  // -- is what it reads there?

  void check_reads(std::int64_t step, const Instruction& at) {
    for (SlotId slot : std::set<SlotId>(at.reads.begin(), at.reads.end())) {
      if (!written_[slot]) {
        report_.add(Rule::kReadBeforeWrite, step, "reads {}, which nothing has written yet",
                    report_.slot_name(slot));
      } else if (!intact(slot)) {
        report_.add(Rule::kStaleRead, step, "reads {}, but {} since it was written",
                    report_.slot_name(slot), describe_overwriter(report_, owners_, slot));
      }
    }
  }

  // -- is what it writes free?

  void check_workspace(std::int64_t step, const Instruction& at) {
    const Bytes booked =
        report_.prepared.nodes[at.node].workspace_of(static_cast<std::size_t>(at.algorithm));
    if (at.workspace_bytes != booked) {
      report_.add(Rule::kWorkspaceBytes, step,
                  "has a workspace of {} bytes; the node books {} for algorithm {}",
                  at.workspace_bytes, booked, at.algorithm);
    }
    const ByteRange bytes = range_of(at.workspace_offset, at.workspace_bytes);
    if (bytes.empty()) return;
    if (at.workspace_offset % graph::kArenaAlignment != 0) {
      report_.add(Rule::kAlignment, step, "workspace starts at {}, which is no multiple of {}",
                  at.workspace_offset, graph::kArenaAlignment);
    }
    if (bytes.begin < 0 || bytes.end > schedule_.arena_bytes) {
      report_.add(Rule::kOutsideArena, step, "workspace [{}, {}) leaves the arena of {} bytes",
                  bytes.begin, bytes.end, schedule_.arena_bytes);
    }
    for (SlotId slot : owners_in(bytes)) {
      if (needed_until_[slot] < step) continue;
      report_.add(Rule::kOverlap, step, "workspace [{}, {}) overlaps {}, which {}", bytes.begin,
                  bytes.end, report_.slot_name(slot), last_use(slot));
    }
    for (SlotId slot : at.writes) {
      if (!overlap(bytes, range(slot))) continue;
      report_.add(Rule::kOverlap, step, "workspace [{}, {}) overlaps the written {}", bytes.begin,
                  bytes.end, report_.slot_name(slot));
    }
  }

  void check_writes(std::int64_t step, const Instruction& at) {
    for (std::size_t i = 0; i < at.writes.size(); ++i) {
      const SlotId slot = at.writes[i];
      for (std::size_t j = 0; j < i; ++j) {
        if (slot == at.writes[j] || !overlap(range(slot), range(at.writes[j]))) continue;
        report_.add(Rule::kOverlap, step, "writes {} over {}, which it writes too",
                    report_.slot_name(slot), report_.slot_name(at.writes[j]));
      }
      const bool twice = written_[slot] || std::count(at.writes.begin(), at.writes.end(), slot) > 1;
      if (twice) {
        report_.add(Rule::kWrittenTwice, step, "writes {}, which is written already",
                    report_.slot_name(slot));
      }
      for (SlotId below : owners_in(range(slot))) {
        if (below == slot) continue;  // written twice
        if (contains(at.reads, below)) {
          check_inplace(step, at, i, below);
        } else if (needed_until_[below] > step) {
          report_.add(Rule::kOverlap, step, "writes {} over {}, which {}", report_.slot_name(slot),
                      report_.slot_name(below), last_use(below));
        }
      }
    }
  }

  // Output `output` lies on bytes of `input`, which the instruction reads.
  void check_inplace(std::int64_t step, const Instruction& at, std::size_t output, SlotId input) {
    const SlotId slot = at.writes[output];
    const auto refuse = [&](const std::string& why) {
      report_.add(Rule::kInplaceNotLegal, step, "writes {} over {}, which it reads: {}",
                  report_.slot_name(slot), report_.slot_name(input), why);
    };
    if (range(slot) != range(input)) refuse("in place needs equal offsets and bytes");
    if (needed_until_[input] > step) refuse("that one " + last_use(input));
    bool all_allowed = true;
    bool forced = false;
    for (std::size_t i = 0; i < at.reads.size(); ++i) {
      if (at.reads[i] != input) continue;
      const graph::InplacePair* pair = find_pair(at.node, i, output);
      all_allowed = all_allowed && pair != nullptr;
      forced = forced || (pair != nullptr && pair->forced);
    }
    if (!all_allowed && !forced) refuse("the node does not work in place on that input");
  }

  const graph::InplacePair* find_pair(NodeId node, std::size_t input, std::size_t output) const {
    for (const graph::InplacePair& pair : report_.prepared.nodes[node].inplace) {
      if (pair.input == static_cast<std::int32_t>(input) &&
          pair.output == static_cast<std::int32_t>(output)) {
        return &pair;
      }
    }
    return nullptr;
  }

  void check_forced_pairs(std::int64_t step, const Instruction& at) {
    for (const graph::InplacePair& pair : report_.prepared.nodes[at.node].inplace) {
      if (!pair.forced) continue;
      const SlotId input = at.reads.at(static_cast<std::size_t>(pair.input));
      const SlotId output = at.writes.at(static_cast<std::size_t>(pair.output));
      if (range(input).begin == range(output).begin) continue;
      report_.add(Rule::kInplaceRequired, step, "must write {} in place of {}",
                  report_.slot_name(output), report_.slot_name(input));
    }
  }

  // -- do updates wait for all gradients?

  void find_awaited() {
    if (!report_.graph.updates_last) return;
    awaited_ = graph::final_gradients(report_.graph);
    updates_ = graph::parameter_updates(report_.graph);
  }

  void check_update(std::int64_t step, const Instruction& at) {
    if (std::find(updates_.begin(), updates_.end(), at.node) == updates_.end()) return;
    for (ValueId gradient : awaited_) {
      if (runs_[report_.graph.values[gradient].producer] > 0) continue;
      report_.add(Rule::kUpdateEarly, step,
                  "updates a parameter before '{}' is made; updates come last in this graph",
                  report_.value_name(gradient));
    }
    awaited_.clear();  // said once
  }

  // -- does a repeated run repeat?

  void check_repetition(std::int64_t step, const Instruction& at) {
    const graph::Node& node = node_of(at);
    if (++runs_[at.node] > 1 && !graph::op_info(node.op).recomputable) {
      report_.add(Rule::kRunTwice, step, "runs again; a {} node runs once",
                  graph::op_info(node.op).name);
    }
    std::vector<ValueId> found;
    for (SlotId slot : at.reads) found.push_back(value_in(slot));
    FirstRun& first = first_runs_[at.node];
    if (runs_[at.node] == 1) {
      first = {step, at.algorithm, std::move(found)};
      return;
    }
    if (at.algorithm != first.algorithm) {
      report_.add(Rule::kAlgorithmDiffers, step,
                  "runs again with algorithm {}, where the first run at step {} had {}",
                  at.algorithm, first.step, first.algorithm);
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] == first.values[i]) continue;
      report_.add(Rule::kRecomputeDiffers, step,
                  "runs again and finds {} for '{}', where the first run at step {} found {}",
                  found_name(found[i]), report_.value_name(node.inputs[i]), first.step,
                  found_name(first.values[i]));
    }
  }

  // The value that the bytes of `slot` hold now; invalid when they are no one value.
  ValueId value_in(SlotId slot) const {
    if (range(slot).empty()) return schedule_.slots[slot].value;
    const std::vector<ByteOwners::Piece> pieces = owners_.pieces(range(slot));
    const SlotId owner = pieces.front().owner;
    if (pieces.size() != 1 || !owner.valid() || range(owner) != range(slot)) return {};
    return schedule_.slots[owner].value;
  }

  std::string found_name(ValueId value) const {
    return value.valid() ? "'" + report_.value_name(value) + "'" : "overwritten bytes";
  }

  void execute(const Instruction& at) {
    owners_.write(range_of(at.workspace_offset, at.workspace_bytes), SlotId());
    for (SlotId slot : at.writes) {
      written_[slot] = true;
      owners_.write(range(slot), slot);
    }
  }

  struct FirstRun {
    std::int64_t step = -1;
    std::int32_t algorithm = 0;
    std::vector<ValueId> values;  // found in the bytes that it read
  };

  VerifyReport& report_;
  const Schedule& schedule_;
  const std::int64_t steps_;
  ByteOwners owners_;
  base::IdVector<SlotId, bool> written_;
  base::IdVector<SlotId, std::int64_t> needed_until_;  // last reader; steps_ for exit; -1: nobody
  base::IdVector<NodeId, int> runs_;
  base::IdVector<NodeId, FirstRun> first_runs_;
  std::vector<NodeId> updates_;   // of parameters, where they come last
  std::vector<ValueId> awaited_;  // before the first of them
};

}  // namespace

ReplayEnd verify_replay(VerifyReport& report) {
  return Replay(report).run();
}

}  // namespace reprise::schedule
