#include "cli/breakdown.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace reprise::cli {
namespace {

using graph::NodeId;
using graph::Phase;
using graph::Role;
using graph::ValueId;
using schedule::PlannedStep;
using schedule::Slot;
using schedule::SlotId;

// Per slot: was it written by a repeated run of its node?
std::vector<bool> find_recomputed(const PlannedStep& step) {
  std::vector<bool> ran(step.prepared.graph.nodes.size(), false);
  std::vector<bool> recomputed(step.schedule.slots.size(), false);
  for (const schedule::Instruction& instruction : step.schedule.instructions) {
    for (const SlotId slot : instruction.writes) {
      recomputed[slot.index()] = ran[instruction.node.index()];
    }
    ran[instruction.node.index()] = true;
  }
  return recomputed;
}

// The role whose bytes a value uses: a parameter's next version lies in the parameter.
std::vector<Role> storage_roles(const graph::Graph& graph) {
  std::vector<Role> roles;
  for (const graph::Value& value : graph.values) roles.push_back(value.role);
  for (const graph::Update& update : graph.updates) {
    roles[update.final.index()] = roles[update.initial.index()];
  }
  return roles;
}

const char* category(Role role, bool recomputed) {
  switch (role) {
    case Role::kInput:
      return "batch";
    case Role::kParameter:
      return "parameters";
    case Role::kOptimizerState:
      return "optimizer state";
    case Role::kState:
      return "statistics and carried state";
    case Role::kActivation:
      return recomputed ? "activations, recomputed" : "activations, kept";
    case Role::kGradient:
      return "gradients";
    case Role::kUpdate:
      return "updates";
  }
  return "other";
}

// Live bytes per instruction, slots and workspace; a buffer that is handed on in place counts once.
std::vector<Bytes> live_bytes(const PlannedStep& step,
                              const base::IdVector<SlotId, schedule::Lifetime>& lifetimes) {
  const auto& instructions = step.schedule.instructions;
  std::vector<Bytes> change(instructions.size() + 1, 0);
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const schedule::Lifetime& life = lifetimes[SlotId(i)];
    if (life.end <= life.start) continue;
    change[static_cast<std::size_t>(life.start)] += step.schedule.slots[SlotId(i)].bytes;
    change[static_cast<std::size_t>(life.end)] -= step.schedule.slots[SlotId(i)].bytes;
  }
  std::vector<Bytes> live;
  Bytes sum = 0;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    sum += change[i];
    Bytes shared = 0;
    for (const SlotId read : instructions[i].reads) {
      for (const SlotId written : instructions[i].writes) {
        const Slot& slot = step.schedule.slots[read];
        if (slot.offset != step.schedule.slots[written].offset || slot.bytes == 0) continue;
        shared += slot.bytes;
      }
    }
    live.push_back(sum - shared + instructions[i].workspace_bytes);
  }
  return live;
}

// Whatever happens to a group's nodes, gathered under the name that `group_of` gives them.
std::vector<GroupFate> gather(const PlannedStep& step,
                              const std::function<std::string(const graph::Node&)>& group_of) {
  const graph::Graph& graph = step.prepared.graph;
  const auto& instructions = step.schedule.instructions;
  const auto lifetimes = schedule::slot_lifetimes(step.schedule);
  const auto backward =
      std::find_if(instructions.begin(), instructions.end(), [&](const auto& instruction) {
        return graph.nodes[instruction.node].phase == Phase::kBackward;
      });
  const std::int64_t border = backward - instructions.begin();

  std::vector<GroupFate> fates;
  std::unordered_map<std::string, std::size_t> index;
  std::vector<std::int64_t> runs(graph.nodes.size(), 0);
  std::unordered_map<Bytes, std::int64_t> counted;  // offsets already counted as kept
  for (const schedule::Instruction& instruction : instructions) {
    const graph::Node& node = graph.nodes[instruction.node];
    if (node.phase != Phase::kForward) continue;
    const auto [found, added] = index.try_emplace(group_of(node), fates.size());
    if (added) fates.push_back({.group = found->first});
    GroupFate& fate = fates[found->second];
    const std::int64_t run = ++runs[instruction.node.index()];
    if (run == 1) ++fate.nodes;
    if (run == 2) ++fate.recomputed;
    if (run > 1) {
      ++fate.extra_runs;
      fate.extra_ns += step.prepared.nodes[instruction.node].cost_ns;
      continue;
    }
    for (const SlotId slot : instruction.writes) {
      const schedule::Lifetime& life = lifetimes[slot];
      const Slot& bytes = step.schedule.slots[slot];
      if (life.start >= border || life.end <= border || bytes.bytes == 0) continue;
      if (counted.emplace(bytes.offset, 1).second) fate.kept_bytes += bytes.bytes;
    }
  }
  return fates;
}

std::string first_component(const std::string& name) {
  return name.substr(0, std::min(name.find('.'), name.find('/')));
}

std::string without_number(const std::string& name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  if (last == std::string::npos || last + 1 == name.size()) return name;
  return name.substr(0, last + 1) + "*";
}

}  // namespace

PeakBreakdown break_down_peak(const PlannedStep& step) {
  PeakBreakdown result;
  if (step.schedule.instructions.empty()) return result;
  const auto lifetimes = schedule::slot_lifetimes(step.schedule);
  const std::vector<Bytes> live = live_bytes(step, lifetimes);
  const std::int64_t at = std::max_element(live.begin(), live.end()) - live.begin();
  const schedule::Instruction& instruction =
      step.schedule.instructions[static_cast<std::size_t>(at)];
  result.instruction = at;
  result.node = step.prepared.graph.nodes[instruction.node].name;

  const std::vector<Role> roles = storage_roles(step.prepared.graph);
  const std::vector<bool> recomputed = find_recomputed(step);
  std::unordered_map<Bytes, bool> taken;  // offset: a buffer handed on in place counts once
  std::unordered_map<std::string, Bytes> sums;
  Bytes total = instruction.workspace_bytes;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const SlotId id(i);
    const Slot& slot = step.schedule.slots[id];
    if (lifetimes[id].start > at || lifetimes[id].end <= at || slot.bytes == 0) continue;
    if (!taken.emplace(slot.offset, true).second) continue;
    sums[category(roles[slot.value.index()], recomputed[i])] += slot.bytes;
    total += slot.bytes;
  }
  for (const char* name :
       {"parameters", "optimizer state", "statistics and carried state", "batch",
        "activations, kept", "activations, recomputed", "gradients", "updates"}) {
    if (sums[name] > 0) result.items.push_back({name, sums[name]});
  }
  if (instruction.workspace_bytes > 0) {
    result.items.push_back({"workspace", instruction.workspace_bytes});
  }
  if (step.schedule.arena_bytes > total) {
    result.items.push_back({"alignment and holes", step.schedule.arena_bytes - total});
  }
  return result;
}

std::vector<GroupFate> fate_by_part(const PlannedStep& step, std::size_t most) {
  auto fates = gather(step, [](const graph::Node& node) { return first_component(node.name); });
  if (fates.size() <= most) return fates;
  return gather(step,
                [](const graph::Node& node) { return without_number(first_component(node.name)); });
}

std::vector<GroupFate> fate_by_op(const PlannedStep& step) {
  return gather(step,
                [](const graph::Node& node) { return std::string(graph::op_info(node.op).name); });
}

}  // namespace reprise::cli
