#include "runtime/binding.h"

#include <algorithm>

#include "base/error.h"

namespace reprise::runtime {
namespace {

using base::Bytes;
using graph::ValueId;
using schedule::Instruction;
using schedule::Slot;
using schedule::SlotId;

// Checks the parts of one schedule before anything is dereferenced.
class FormCheck {
 public:
  FormCheck(const graph::PreparedGraph& prepared, const schedule::Schedule& schedule)
      : prepared_(prepared), schedule_(schedule) {}

  void slots() const {
    for (std::size_t i = 0; i < schedule_.slots.size(); ++i) {
      const Slot& slot = schedule_.slots[SlotId(i)];
      if (!prepared_.graph.values.contains(slot.value)) {
        throw base::input_error("schedule: slot {} holds value {}, but the graph has {} values", i,
                                slot.value.index(), prepared_.graph.values.size());
      }
      inside(slot.offset, slot.bytes, fmt::format("slot {}", i));
    }
    for (const SlotId slot : schedule_.entry) known(slot, "the entry list");
    for (const SlotId slot : schedule_.exit) known(slot, "the exit list");
  }

  void instruction(std::size_t index) const {
    const Instruction& instruction = schedule_.instructions[index];
    if (!prepared_.graph.nodes.contains(instruction.node)) {
      throw base::input_error("schedule: instruction {} runs node {}, but the graph has {} nodes",
                              index, instruction.node.index(), prepared_.graph.nodes.size());
    }
    const graph::Node& node = prepared_.graph.nodes[instruction.node];
    const std::string where = fmt::format("instruction {} (node '{}')", index, node.name);
    operands(instruction.reads, node.inputs, where, "reads");
    operands(instruction.writes, node.outputs, where, "writes");
    inside(instruction.workspace_offset, instruction.workspace_bytes, where + "'s workspace");
    const graph::PreparedNode& facts = prepared_.nodes[instruction.node];
    const auto algorithm = static_cast<std::size_t>(instruction.algorithm);
    if (instruction.algorithm < 0 || algorithm >= facts.algorithms()) {
      throw base::input_error("schedule: {} runs algorithm {}; the node has {}, counted from 0",
                              where, instruction.algorithm, facts.algorithms());
    }
    const Bytes booked = facts.workspace_of(algorithm);
    if (instruction.workspace_bytes < booked) {
      throw base::input_error("schedule: {} has a workspace of {} bytes; the kernel needs {}",
                              where, instruction.workspace_bytes, booked);
    }
  }

 private:
  void known(SlotId slot, std::string_view where) const {
    if (!schedule_.slots.contains(slot)) {
      throw base::input_error("schedule: {} names slot {}, but there are {} slots", where,
                              slot.index(), schedule_.slots.size());
    }
  }

  void inside(Bytes offset, Bytes bytes, std::string_view what) const {
    if (offset < 0 || bytes < 0 || offset > schedule_.arena_bytes ||
        bytes > schedule_.arena_bytes - offset || offset % graph::kArenaAlignment != 0) {
      throw base::input_error(
          "schedule: {} lies at offset {} with {} bytes; the arena has {} bytes and offsets are "
          "multiples of {}",
          what, offset, bytes, schedule_.arena_bytes, graph::kArenaAlignment);
    }
  }

  void operands(const std::vector<SlotId>& slots, const std::vector<ValueId>& values,
                std::string_view where, std::string_view verb) const {
    if (slots.size() != values.size()) {
      throw base::input_error("schedule: {} {} {} slots; the node has {}", where, verb,
                              slots.size(), values.size());
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
      known(slots[i], where);
      const ValueId held = schedule_.slots[slots[i]].value;
      const ValueId wanted = graph::storage_root(prepared_.graph, values[i]);
      if (held != wanted) {
        throw base::input_error("schedule: {} {} slot {} of value '{}' in place of '{}'", where,
                                verb, slots[i].index(), prepared_.graph.values[held].name,
                                prepared_.graph.values[wanted].name);
      }
    }
  }

  const graph::PreparedGraph& prepared_;
  const schedule::Schedule& schedule_;
};

}  // namespace

Binding bind_schedule(const graph::PreparedGraph& prepared, const schedule::Schedule& schedule,
                      const std::function<std::byte*(Bytes)>& address) {
  const FormCheck check(prepared, schedule);
  check.slots();
  std::size_t operands = 0;
  for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
    check.instruction(i);
    operands += schedule.instructions[i].reads.size() + schedule.instructions[i].writes.size();
  }

  Binding binding;
  binding.instructions.reserve(schedule.instructions.size());
  binding.addresses.reserve(operands);  // never grows: the instructions point into it
  Bytes reach = 0;
  const auto bind = [&](SlotId id) {
    const Slot& slot = schedule.slots[id];
    binding.addresses.push_back(address(slot.offset));
    reach = std::max(reach, slot.offset + slot.bytes);
  };
  for (const Instruction& instruction : schedule.instructions) {
    BoundInstruction bound;
    bound.node = instruction.node;
    bound.input_count = static_cast<std::uint32_t>(instruction.reads.size());
    bound.output_count = static_cast<std::uint32_t>(instruction.writes.size());
    bound.algorithm = instruction.algorithm;
    bound.addresses = binding.addresses.data() + binding.addresses.size();
    for (const SlotId slot : instruction.reads) bind(slot);
    for (const SlotId slot : instruction.writes) bind(slot);
    if (instruction.workspace_bytes > 0) {
      bound.workspace = address(instruction.workspace_offset);
      reach = std::max(reach, instruction.workspace_offset + instruction.workspace_bytes);
    }
    bound.reach = reach;
    binding.instructions.push_back(bound);
  }
  return binding;
}

}  // namespace reprise::runtime
