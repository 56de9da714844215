// reprise show: a plan file for people.

#include <algorithm>
#include <memory>

#include "cli/breakdown.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/flags.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/values.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

#include "graph/text.h"

namespace reprise::cli {
namespace {

struct ShowFlags {
  std::string file;
  std::int64_t limit = 40;
  bool all = false;
  bool dot = false;
};

std::int64_t repeated_runs(const schedule::PlannedStep& step) {
  std::vector<bool> ran(step.prepared.graph.nodes.size(), false);
  std::int64_t repeated = 0;
  for (const schedule::Instruction& instruction : step.schedule.instructions) {
    if (ran[instruction.node.index()]) ++repeated;
    ran[instruction.node.index()] = true;
  }
  return repeated;
}

std::string facts_of(const schedule::PlannedStep& step) {
  const graph::PreparedGraph& prepared = step.prepared;
  const PeakBreakdown peak = break_down_peak(step);
  Facts facts;
  facts.add("device", fmt::format("{}; costs from {}", prepared.backend, prepared.cost_source));
  facts.add("planner", step.planner);
  facts.add("budget", exact_bytes(step.budget_bytes));
  facts.add("arena", exact_bytes(step.schedule.arena_bytes));
  facts.add("graph", fmt::format("{} values, {} nodes, {} parameters",
                                 grouped(static_cast<std::int64_t>(prepared.graph.values.size())),
                                 grouped(static_cast<std::int64_t>(prepared.graph.nodes.size())),
                                 grouped(graph::parameter_count(prepared.graph))));
  facts.add("schedule",
            fmt::format("{} instructions, {} of them repeated runs; {} slots",
                        grouped(static_cast<std::int64_t>(step.schedule.instructions.size())),
                        grouped(repeated_runs(step)),
                        grouped(static_cast<std::int64_t>(step.schedule.slots.size()))));
  std::vector<std::string> parts;
  for (const auto& item : peak.items) {
    parts.push_back(fmt::format("{} {}", item.category, base::format_bytes(item.bytes)));
  }
  facts.add("peak at", fmt::format("instruction {} ({}): {}", peak.instruction, peak.node,
                                   fmt::join(parts, ", ")));
  return facts.text();
}

// "conv1@+1.5 MiB": the value and where it lies.
std::string slots_text(const schedule::PlannedStep& step,
                       const std::vector<schedule::SlotId>& slots) {
  std::vector<std::string> parts;
  for (const schedule::SlotId id : slots) {
    const schedule::Slot& slot = step.schedule.slots[id];
    parts.push_back(fmt::format("{}@{}", step.prepared.graph.values[slot.value].name, slot.offset));
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

void print_instructions(std::ostream& out, const schedule::PlannedStep& step, std::size_t limit) {
  using Align = Table::Align;
  const auto& instructions = step.schedule.instructions;
  Table table({{"#"},
               {"node", Align::kLeft},
               {"op", Align::kLeft},
               {"run"},
               {"workspace"},
               {"writes", Align::kLeft},
               {"reads", Align::kLeft}});
  std::vector<int> runs(step.prepared.graph.nodes.size(), 0);
  for (std::size_t i = 0; i < std::min(limit, instructions.size()); ++i) {
    const schedule::Instruction& instruction = instructions[i];
    const graph::Node& node = step.prepared.graph.nodes[instruction.node];
    table.add({fmt::format("{}", i), node.name, std::string(graph::op_info(node.op).name),
               fmt::format("{}", ++runs[instruction.node.index()]),
               grouped(instruction.workspace_bytes), slots_text(step, instruction.writes),
               slots_text(step, instruction.reads)});
  }
  out << "\nInstructions (value@offset):\n" << table.text();
  if (limit < instructions.size()) {
    out << fmt::format("  ... and {} more; --all prints them\n", instructions.size() - limit);
  }
}

Json document_of(const schedule::PlannedStep& step) {
  Json document;
  document["model"] = step.prepared.graph.name;
  document["device"] = step.prepared.backend;
  document["cost_source"] = step.prepared.cost_source;
  document["planner"] = step.planner;
  document["budget_bytes"] = step.budget_bytes;
  document["arena_bytes"] = step.schedule.arena_bytes;
  document["nodes"] = step.prepared.graph.nodes.size();
  document["instructions"] = step.schedule.instructions.size();
  document["slots"] = step.schedule.slots.size();
  document["recomputed_nodes"] = repeated_runs(step);
  document["peak_categories"] = Json::object();
  const PeakBreakdown peak = break_down_peak(step);
  for (const auto& item : peak.items) document["peak_categories"][item.category] = item.bytes;
  return document;
}

int run_show(const ShowFlags& flags, Context& context) {
  const schedule::PlannedStep step = read_plan(flags.file);
  if (context.json) {
    context.print(document_of(step));
  } else if (flags.dot) {
    context.out << graph::to_dot(step.prepared.graph);
  } else {
    const std::size_t limit =
        flags.all ? step.schedule.instructions.size() : static_cast<std::size_t>(flags.limit);
    context.out << step.prepared.graph.name << "\n" << facts_of(step);
    print_instructions(context.out, step, limit);
  }
  return kOk;
}

}  // namespace

Action add_show(CLI::App& app) {
  const auto flags = std::make_shared<ShowFlags>();
  app.add_option("file", flags->file, "a plan file, as 'reprise plan --out' writes it")
      ->required()
      ->type_name("FILE");
  app.option_defaults()->group("Output");
  add_value(app, "--limit", "N", "instructions to print; default 40",
            [flags](const std::string& text) { flags->limit = parse_whole("--limit", text, 0); });
  app.add_flag("--all", flags->all, "print every instruction");
  app.add_flag("--dot", flags->dot, "print the graph for Graphviz instead");
  app.description("Prints what a plan file holds: its figures, its peak and its instructions.");
  app.footer(
      "\nExamples:\n"
      "  reprise show floor.plan\n"
      "  reprise show floor.plan --dot | dot -Tsvg > graph.svg");
  return [flags](Context& context) { return run_show(*flags, context); };
}

}  // namespace reprise::cli
