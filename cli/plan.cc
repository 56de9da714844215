// reprise plan: what a budget means for a model, before anything runs.

#include "api/plan.h"

#include "cli/breakdown.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/flags.h"
#include "cli/prepare.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/waiting.h"
#include "fmt/format.h"

#include "schedule/text.h"

namespace reprise::cli {
namespace {

struct PlanFlags {
  Flags shared;
  std::string out;
};

std::string peak_text(const PeakBreakdown& peak) {
  std::string text =
      fmt::format("\nThe peak, at instruction {} ({}):\n", peak.instruction, peak.node);
  Table table({{"category", Table::Align::kLeft}, {"bytes"}, {""}});
  for (const PeakBreakdown::Item& item : peak.items) {
    table.add({item.category, grouped(item.bytes), base::format_bytes(item.bytes)});
  }
  return text + table.text();
}

std::string fate_text(const std::string& title, const std::vector<GroupFate>& fates) {
  Table table({{title, Table::Align::kLeft},
               {"nodes"},
               {"recomputed"},
               {"kept"},
               {"extra runs"},
               {"extra time"}});
  for (const GroupFate& fate : fates) {
    table.add({fate.group, grouped(fate.nodes), grouped(fate.recomputed),
               base::format_bytes(fate.kept_bytes), grouped(fate.extra_runs),
               milliseconds(fate.extra_ns)});
  }
  return table.text();
}

Json fate_document(const std::vector<GroupFate>& fates) {
  Json list = Json::array();
  for (const GroupFate& fate : fates) {
    list.push_back({{"name", fate.group},
                    {"nodes", fate.nodes},
                    {"recomputed_nodes", fate.recomputed},
                    {"kept_bytes", fate.kept_bytes},
                    {"extra_runs", fate.extra_runs},
                    {"extra_ns", fate.extra_ns}});
  }
  return list;
}

Json document_of(const api::PlannedTraining& planned) {
  Json document = plan_document(planned.report);
  const graph::PreparedGraph& prepared = planned.step.prepared;
  document["parameters"] = graph::parameter_count(prepared.graph);
  document["device"] = prepared.backend;
  document["cost_source"] = prepared.cost_source;
  const PeakBreakdown peak = break_down_peak(planned.step);
  document["peak_instruction"] = peak.instruction;
  document["peak_node"] = peak.node;
  document["peak_categories"] = Json::object();
  for (const auto& item : peak.items) document["peak_categories"][item.category] = item.bytes;
  document["parts"] = fate_document(fate_by_part(planned.step));
  document["ops"] = fate_document(fate_by_op(planned.step));
  return document;
}

void print_plan(Context& context, const api::PlannedTraining& planned) {
  const graph::PreparedGraph& prepared = planned.step.prepared;
  context.out << fmt::format("{} on {}: {} parameters\n", planned.report.model, prepared.backend,
                             grouped(graph::parameter_count(prepared.graph)))
              << plan_lines(planned.report)
              << fmt::format("  planned in {:.0f} ms\n", planned.report.plan_ms)
              << peak_text(break_down_peak(planned.step))
              << "\nThe forward pass, kept for backward or computed again:\n"
              << fate_text("part", fate_by_part(planned.step)) << "\n"
              << fate_text("op", fate_by_op(planned.step));
}

int run_plan(const PlanFlags& flags, Context& context) {
  api::TrainOptions options = complete_flags(flags.shared);
  if (const auto refused = choose_chunk(flags.shared, options, context)) return *refused;
  const api::PlanOptions& plan = options.session.plan;
  const PreparedTraining prepared = prepare_training(options);
  for (const std::string& warning : prepared.warnings)
    context.err << "warning: " << warning << "\n";
  auto outcome = while_waiting(context, "planning " + options.model, [&] {
    return api::plan_step(prepared.graph, plan, prepared.costs);
  });
  if (const auto* infeasible = std::get_if<planner::Infeasible>(&outcome)) {
    return report_infeasible(context, *infeasible, options.model, plan.planner,
                             flags.shared.budget_text);
  }
  auto& planned = std::get<api::PlannedTraining>(outcome);
  planned.report.chunk = prepared.chunk;
  planned.report.micro_batches = prepared.micro_batches;
  if (!flags.out.empty()) write_file(flags.out, schedule::print_planned_step(planned.step));
  if (context.json) {
    context.print(document_of(planned));
  } else {
    print_plan(context, planned);
    if (!flags.out.empty()) context.out << "\nwrote " << flags.out << "\n";
  }
  return kOk;
}

}  // namespace

Action add_plan(CLI::App& app) {
  const auto flags = std::make_shared<PlanFlags>();
  add_model_flags(app, flags->shared);
  add_planner_flags(app, flags->shared);
  add_device_flags(app, flags->shared);
  add_costs_flag(app, flags->shared);
  add_optimizer_flags(app, flags->shared);
  app.option_defaults()->group("Output");
  add_value(app, "--out", "FILE", "write the plan there, for show, verify and map",
            [flags](const std::string& text) { flags->out = text; });
  app.description(
      "Plans one training step and says what is kept and recomputed, what it costs, and how good\n"
      "the plan is. Nothing is trained.");
  app.footer(
      "\nExamples:\n"
      "  reprise plan --model resnet50 --batch 32 --budget 2GiB\n"
      "  reprise plan --model resnet20 --data fashion-mnist --budget floor --out floor.plan\n"
      "  reprise plan --model lstm --seq-len 1000 --chunk auto --budget 10% --json");
  return [flags](Context& context) { return run_plan(*flags, context); };
}

}  // namespace reprise::cli
