// The verifier against an interpreter that runs schedules on symbols.
//
// Each byte of the interpreter's arena holds (content, index): byte `index` of the value that a
// node would compute from those very inputs. A schedule is right when its fetched and persistent
// values hold the contents that the graph gives them. Correct schedules are then broken at random:
// whatever the verifier does not report must still be right.

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "schedule/verify.h"
#include "tests/schedule/random_step.h"

namespace reprise::schedule {
namespace {

using testing::draw;

using Content = std::uint64_t;
constexpr Content kGarbage = 0;

Content combine(Content a, Content b) {
  Content h = (a ^ (b + 0x9E3779B97F4A7C15u + (a << 12) + (a >> 4))) * 0xBF58476D1CE4E5B9u;
  return (h ^ (h >> 29)) | 1;
}

Content computed(NodeId node, std::size_t output, const std::vector<Content>& inputs) {
  Content content = combine(node.index() + 1, output + 1);
  for (Content input : inputs) {
    if (input == kGarbage) return kGarbage;
    content = combine(content, input);
  }
  return content;
}

class Interpreter {
 public:
  Interpreter(const graph::PreparedGraph& prepared, const Schedule& schedule)
      : prepared_(prepared), graph_(prepared.graph), schedule_(schedule) {
    evaluate_graph();
  }

  // "" when the schedule is right, otherwise what went wrong.
  std::string run() {
    if (schedule_.arena_bytes < 0 || schedule_.arena_bytes > 1 << 20) return "arena";
    arena_.assign(static_cast<std::size_t>(schedule_.arena_bytes), {});
    for (SlotId slot : schedule_.entry) {
      if (!known(slot)) return "entry slot";
      const ValueId value = schedule_.slots[slot].value;
      if (graph_.values[value].producer.valid()) return "entry of a made value";
      if (!store(schedule_.slots[slot].offset, value, nominal_[value])) return "entry place";
      if (!entry_offset_.emplace(value, schedule_.slots[slot].offset).second) return "entry twice";
    }
    for (const Instruction& at : schedule_.instructions) {
      if (!execute(at)) return fmt::format("instruction of node {}", at.node.index());
    }
    return check_end();
  }

 private:
  struct Byte {
    Content content = kGarbage;
    Bytes index = 0;
  };
  struct Place {
    Bytes begin = 0, end = 0;
    bool meets(const Place& other) const { return begin < other.end && other.begin < end; }
    bool operator==(const Place&) const = default;
  };

  void evaluate_graph() {
    nominal_.resize(graph_.values.size());
    for (std::size_t i = 0; i < graph_.values.size(); ++i) nominal_[ValueId(i)] = combine(7, i);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const graph::Node& node = graph_.nodes[NodeId(n)];
      std::vector<Content> inputs;
      for (ValueId value : node.inputs) inputs.push_back(nominal_[value]);
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        nominal_[node.outputs[o]] =
            node.op == graph::OpKind::kReshape ? inputs[0] : computed(NodeId(n), o, inputs);
      }
    }
  }

  bool known(SlotId slot) const {
    return schedule_.slots.contains(slot) && graph_.values.contains(schedule_.slots[slot].value);
  }
  bool inside(const Place& place) const {
    return place.begin >= 0 && place.begin % 64 == 0 && place.end <= schedule_.arena_bytes;
  }
  Place place(Bytes offset, ValueId value) const {
    return {offset, offset + prepared_.value_bytes[value]};
  }

  bool store(Bytes offset, ValueId value, Content content) {
    const Place at = place(offset, value);
    if (!inside(at)) return false;
    for (Bytes i = at.begin; i < at.end; ++i) {
      arena_[static_cast<std::size_t>(i)] = {content, i - at.begin};
    }
    return true;
  }

  Content load(const Place& at) const {
    const Content content = arena_[static_cast<std::size_t>(at.begin)].content;
    for (Bytes i = at.begin; i < at.end; ++i) {
      const Byte& byte = arena_[static_cast<std::size_t>(i)];
      if (byte.content != content || byte.index != i - at.begin) return kGarbage;
    }
    return content;
  }

  // What a kernel does: reads at the bytes of its inputs' slots, writes all outputs, scribbles over
  // its workspace. Sharing bytes beyond the node's in-place pairs ruins all outputs.
  bool execute(const Instruction& at) {
    if (!graph_.nodes.contains(at.node)) return false;
    const graph::Node& node = graph_.nodes[at.node];
    if (node.op == graph::OpKind::kReshape) return false;
    if (at.reads.size() != node.inputs.size() || at.writes.size() != node.outputs.size()) {
      return false;
    }
    if (node.phase == graph::Phase::kUpdate && ++updates_[at.node] > 1) return false;
    std::vector<Place> reads, writes;
    std::vector<Content> inputs;
    for (std::size_t i = 0; i < at.reads.size(); ++i) {
      if (!known(at.reads[i])) return false;
      reads.push_back(place(schedule_.slots[at.reads[i]].offset, node.inputs[i]));
      if (!inside(reads.back())) return false;
      inputs.push_back(load(reads.back()));
    }
    for (std::size_t i = 0; i < at.writes.size(); ++i) {
      if (!known(at.writes[i])) return false;
      writes.push_back(place(schedule_.slots[at.writes[i]].offset, node.outputs[i]));
      if (!inside(writes.back())) return false;
    }
    if (at.algorithm < 0 || at.algorithm > std::ssize(prepared_.nodes[at.node].others)) {
      return false;
    }
    if (algorithm_.emplace(at.node, at.algorithm).first->second != at.algorithm) return false;
    if (!update_may_run(at.node)) return false;
    const Bytes booked = at.algorithm == 0 ? prepared_.nodes[at.node].workspace_bytes
                                           : prepared_.nodes[at.node]
                                                 .others[static_cast<std::size_t>(at.algorithm) - 1]
                                                 .workspace_bytes;
    const Place workspace{at.workspace_offset, at.workspace_offset + booked};
    if (booked > at.workspace_bytes || (booked > 0 && !inside(workspace))) return false;
    const bool ruined = hazards(at.node, reads, writes, booked > 0 ? workspace : Place{});
    for (Bytes i = workspace.begin; booked > 0 && i < workspace.end; ++i) {
      arena_[static_cast<std::size_t>(i)] = {};
    }
    for (std::size_t o = 0; o < writes.size(); ++o) {
      store(writes[o].begin, node.outputs[o], ruined ? kGarbage : computed(at.node, o, inputs));
    }
    return true;
  }

  // Where updates come last: have all nodes run of which an update reads something?
  bool update_may_run(NodeId node) const {
    const auto is_update = [&](NodeId n) {
      return n.valid() && graph_.nodes[n].op == graph::OpKind::kSgd;
    };
    if (!graph_.updates_last || !is_update(node)) return true;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!is_update(NodeId(n))) continue;
      for (ValueId input : graph_.nodes[NodeId(n)].inputs) {
        const NodeId maker = graph_.values[root(input)].producer;
        if (maker.valid() && !is_update(maker) && !algorithm_.contains(maker)) return false;
      }
    }
    return true;
  }

  bool hazards(NodeId node, const std::vector<Place>& reads, const std::vector<Place>& writes,
               const Place& workspace) const {
    for (std::size_t o = 0; o < writes.size(); ++o) {
      for (std::size_t p = 0; p < o; ++p) {
        if (writes[o].meets(writes[p])) return true;
      }
      if (writes[o].meets(workspace)) return true;
      for (std::size_t i = 0; i < reads.size(); ++i) {
        if (reads[i].meets(workspace)) return true;
        if (!writes[o].meets(reads[i])) continue;
        if (writes[o] != reads[i] || !allowed(node, i, o)) return true;
      }
    }
    for (const graph::InplacePair& pair : prepared_.nodes[node].inplace) {
      const auto i = static_cast<std::size_t>(pair.input);
      const auto o = static_cast<std::size_t>(pair.output);
      if (pair.forced && reads[i] != writes[o]) return true;
    }
    return false;
  }

  bool allowed(NodeId node, std::size_t input, std::size_t output) const {
    for (const graph::InplacePair& pair : prepared_.nodes[node].inplace) {
      if (pair.input == static_cast<std::int32_t>(input) &&
          pair.output == static_cast<std::int32_t>(output)) {
        return true;
      }
    }
    return false;
  }

  ValueId root(ValueId value) const {
    while (graph_.values[value].producer.valid() &&
           graph_.nodes[graph_.values[value].producer].op == graph::OpKind::kReshape) {
      value = graph_.nodes[graph_.values[value].producer].inputs[0];
    }
    return value;
  }

  std::string check_end() const {
    std::map<ValueId, Bytes> exit;
    for (SlotId slot : schedule_.exit) {
      if (!known(slot)) return "exit slot";
      exit[schedule_.slots[slot].value] = schedule_.slots[slot].offset;
    }
    const auto holds = [&](ValueId value) {
      const auto found = exit.find(value);
      if (found == exit.end() || !inside(place(found->second, value))) return false;
      return load(place(found->second, value)) == nominal_[value];
    };
    for (ValueId value : graph_.outputs) {
      if (!holds(root(value))) return "output " + graph_.values[value].name;
    }
    std::map<ValueId, ValueId> last;
    for (const graph::Update& update : graph_.updates) last[update.initial] = update.final;
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
      const graph::Value& value = graph_.values[ValueId(i)];
      if (value.producer.valid()) continue;
      if (!entry_offset_.contains(ValueId(i))) return "no entry for " + value.name;
      if (!graph::is_persistent(value.role)) continue;
      const ValueId at_end = last.contains(ValueId(i)) ? last.at(ValueId(i)) : ValueId(i);
      if (!holds(at_end)) return "last version of " + value.name;
      if (exit.at(at_end) != entry_offset_.at(ValueId(i))) return "place of " + value.name;
    }
    return "";
  }

  const graph::PreparedGraph& prepared_;
  const graph::Graph& graph_;
  const Schedule& schedule_;
  base::IdVector<ValueId, Content> nominal_;
  std::vector<Byte> arena_;
  std::map<ValueId, Bytes> entry_offset_;
  std::map<NodeId, int> updates_;
  std::map<NodeId, std::int32_t> algorithm_;  // of the first run of each node that has run
};

// One random change of a schedule.
class Mutator {
 public:
  Mutator(std::mt19937_64& random, const graph::PreparedGraph& prepared)
      : random_(random), prepared_(prepared) {}

  void mutate(Schedule& s) {
    if (s.slots.empty() || s.instructions.empty()) return;
    Slot& slot = s.slots[SlotId(below(s.slots.size()))];
    Instruction& at = s.instructions[below(s.instructions.size())];
    switch (draw(random_, 0, 16)) {
      case 0:
        slot.offset += 32 * draw(random_, -4, 4);
        return;
      case 1:
      case 2:
        slot.offset = s.slots[SlotId(below(s.slots.size()))].offset;
        return;
      case 3:
        slot.bytes += draw(random_, -1, 1) * 64;
        return;
      case 4:
        slot.value = ValueId(below(prepared_.graph.values.size() + 1));
        return;
      case 5: {
        const std::size_t i = below(s.instructions.size());
        std::swap(s.instructions[i], s.instructions[below(s.instructions.size())]);
        return;
      }
      case 6:
        s.instructions.erase(s.instructions.begin() +
                             static_cast<std::ptrdiff_t>(below(s.instructions.size())));
        return;
      case 7: {
        const Instruction copy = at;
        s.instructions.insert(
            s.instructions.begin() + static_cast<std::ptrdiff_t>(below(s.instructions.size() + 1)),
            copy);
        return;
      }
      case 8:
        if (!at.reads.empty()) at.reads[below(at.reads.size())] = any_slot(s);
        return;
      case 9:
        at.writes[below(at.writes.size())] = any_slot(s);
        return;
      case 10:
        redirect(s, at);
        return;
      case 11:
        at.workspace_offset += 64 * draw(random_, -2, 2);
        return;
      case 12:
        at.workspace_bytes += draw(random_, -1, 1);
        return;
      case 13:
        s.arena_bytes += 64 * draw(random_, -1, 1);
        return;
      case 14:
        mutate_list(s, draw(random_, 0, 1) == 0 ? s.entry : s.exit);
        return;
      case 15:
        at.algorithm += static_cast<std::int32_t>(draw(random_, -1, 1));
        return;
      default:
        at.node = NodeId(below(prepared_.graph.nodes.size() + 1));
        return;
    }
  }

 private:
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  SlotId any_slot(const Schedule& s) { return SlotId(below(s.slots.size() + 1)); }

  // A read of another copy of the same value: often harmless.
  void redirect(const Schedule& s, Instruction& at) {
    if (at.reads.empty()) return;
    SlotId& read = at.reads[below(at.reads.size())];
    if (!s.slots.contains(read)) return;
    for (std::size_t i = 0; i < s.slots.size(); ++i) {
      const SlotId other(i);
      if (other != read && s.slots[other].value == s.slots[read].value) {
        read = other;
        return;
      }
    }
  }

  void mutate_list(const Schedule& s, std::vector<SlotId>& list) {
    if (list.empty() || draw(random_, 0, 2) == 0) {
      list.push_back(any_slot(s));
    } else if (draw(random_, 0, 1) == 0) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(below(list.size())));
    } else {
      list[below(list.size())] = any_slot(s);
    }
  }

  std::mt19937_64& random_;
  const graph::PreparedGraph& prepared_;
};

std::string first_violation(const graph::PreparedGraph& prepared, const Schedule& schedule) {
  const std::vector<Violation> found = verify(prepared, schedule);
  return found.empty() ? "" : fmt::format("{}: {}", rule_name(found[0].rule), found[0].message);
}

TEST(VerifyFuzz, AcceptsRandomCorrectSchedules) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    testing::RandomStep step(seed);
    const Schedule schedule = step.schedule();
    ASSERT_EQ(Interpreter(step.prepared(), schedule).run(), "") << "seed " << seed;
    ASSERT_EQ(first_violation(step.prepared(), schedule), "") << "seed " << seed;
  }
}

TEST(VerifyFuzz, WhatItDoesNotReportIsHarmless) {
  int harmless = 0, reported = 0;
  std::map<Rule, int> rules;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    testing::RandomStep step(seed);
    const Schedule correct = step.schedule();
    Mutator mutator(step.random(), step.prepared());
    for (int i = 0; i < 20; ++i) {
      Schedule schedule = correct;
      for (std::int64_t n = draw(step.random(), 1, 3); n > 0; --n) mutator.mutate(schedule);
      if (schedule == correct) continue;
      const std::vector<Violation> found = verify(step.prepared(), schedule);
      if (!found.empty()) {
        ++reported;
        for (const Violation& violation : found) ++rules[violation.rule];
        continue;
      }
      ++harmless;
      ASSERT_EQ(Interpreter(step.prepared(), schedule).run(), "")
          << "seed " << seed << ", mutation " << i;
    }
  }
  // Both kinds, and every rule, occur often enough to mean something.
  EXPECT_GT(harmless, 1000);
  EXPECT_GT(reported, 20000);
  for (int i = 0; i <= static_cast<int>(Rule::kPeak); ++i) {
    EXPECT_GT(rules[static_cast<Rule>(i)], 20) << rule_name(static_cast<Rule>(i));
  }
}

}  // namespace
}  // namespace reprise::schedule
