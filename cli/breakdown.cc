#include "cli/breakdown.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "schedule/usage.h"

namespace reprise::cli {
namespace {

using graph::Phase;
using schedule::Category;
using schedule::PlannedStep;
using schedule::SlotId;

// The fates of the forward nodes, gathered under the name that `group_of` gives each.
std::vector<GroupFate> gather(const PlannedStep& step,
                              const std::function<std::string(const graph::Node&)>& group_of) {
  const graph::Graph& graph = step.prepared.graph;
  const schedule::Usage usage = schedule::measure_usage(step.prepared, step.schedule);
  const std::int64_t border = schedule::end_of_forward(graph, step.schedule);

  std::vector<GroupFate> fates;
  std::unordered_map<std::string, std::size_t> index;
  std::vector<std::int64_t> runs(graph.nodes.size(), 0);
  for (const schedule::Instruction& instruction : step.schedule.instructions) {
    const graph::Node& node = graph.nodes[instruction.node];
    if (node.phase != Phase::kForward) continue;
    const auto [found, added] = index.try_emplace(group_of(node), fates.size());
    if (added) {
      fates.emplace_back();
      fates.back().group = found->first;
    }
    GroupFate& fate = fates[found->second];
    const std::int64_t run = ++runs[instruction.node.index()];
    if (run == 1) ++fate.nodes;
    if (run == 2) ++fate.recomputed;
    if (run > 1) {
      ++fate.extra_runs;
      fate.extra_ns += step.prepared.nodes[instruction.node].cost_of(
          static_cast<std::size_t>(instruction.algorithm));
      continue;
    }
    for (const SlotId slot : instruction.writes) {
      const schedule::Lifetime& life = usage.lifetimes[slot];
      const bool crosses = life.start < border && life.end > border;
      if (crosses) fate.kept_bytes += step.schedule.slots[slot].bytes;
    }
  }
  return fates;
}

// "layer1" of "layer1.0.conv", and of "micro2/layer1.0.conv": micro-batches are alike.
std::string first_component(const std::string& name) {
  const std::size_t slash = name.starts_with("micro") ? name.find('/') : std::string::npos;
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return name.substr(begin, name.find('.', begin) - begin);
}

std::string without_number(const std::string& name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  if (last == std::string::npos || last + 1 == name.size()) return name;
  return name.substr(0, last + 1) + "*";
}

}  // namespace

PeakBreakdown break_down_peak(const PlannedStep& step) {
  const schedule::Usage usage = schedule::measure_usage(step.prepared, step.schedule);
  PeakBreakdown result;
  result.instruction = usage.peak_step;
  if (!step.schedule.instructions.empty()) {
    const auto& instruction = step.schedule.instructions[static_cast<std::size_t>(usage.peak_step)];
    result.node = step.prepared.graph.nodes[instruction.node].name;
  }
  Bytes rest = step.schedule.arena_bytes;
  for (std::size_t i = 0; i < schedule::kCategoryCount; ++i) {
    const auto category = static_cast<Category>(i);
    const Bytes bytes = usage.at_peak(category);
    if (bytes == 0) continue;
    result.items.push_back({schedule::category_name(category), bytes});
    rest -= bytes;
  }
  if (rest > 0) result.items.push_back({"alignment and holes", rest});
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
