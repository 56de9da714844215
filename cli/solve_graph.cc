// reprise solve on an op graph: Model G.

#include "cli/solve_forms.h"
#include "cli/table.h"
#include "cli/waiting.h"
#include "fmt/format.h"

namespace reprise::cli {
namespace {

using api::GraphInstruction;

Json schedule_document(const planner::Problem& problem, const planner::Order& order) {
  Json schedule = Json::array();
  for (const GraphInstruction& at : api::graph_instructions(problem, order)) {
    schedule.push_back(
        Json::array({at.kind == GraphInstruction::Kind::kRun ? "run" : "drop", at.index}));
  }
  return schedule;
}

// The entry of each op's `choices` that the plan picks; 0 for an op that lists none.
Json choices_document(const planner::OpGraphFile& file, const planner::Plan& plan) {
  Json list = Json::array();
  for (std::size_t i = 0; i < file.choices.size(); ++i) {
    const std::size_t algorithm =
        plan.choices.empty() ? 0 : static_cast<std::size_t>(plan.choices[i]);
    list.push_back(file.choices[schedule::OpId(i)][algorithm]);
  }
  return list;
}

// What lies where, with lifetimes in runs: start and end count the "run" instructions.
Json buffers_document(const planner::Problem& problem, const planner::Plan& plan) {
  const schedule::Trace trace = schedule::trace_order(problem, plan.order, plan.choices).trace;
  const auto place = [&](schedule::BufferId id) {
    const schedule::Buffer& buffer = trace.buffers[id];
    Json document;
    document["start"] = buffer.start;
    document["end"] = buffer.end;
    document["bytes"] = buffer.bytes;
    document["offset"] = plan.packing.offsets[id.index()];
    return document;
  };
  base::IdVector<schedule::BufferId, std::vector<std::size_t>> tensors(trace.buffers.size());
  for (const schedule::Copy& copy : trace.copies) {
    tensors[copy.buffer].push_back(copy.tensor.index());
  }
  Json list = Json::array();
  for (std::size_t i = 0; i < trace.buffers.size(); ++i) {
    const schedule::BufferId id(i);
    if (tensors[id].empty()) continue;
    list.push_back(place(id));
    list.back()["tensors"] = tensors[id];
  }
  for (const schedule::Step& step : trace.steps) {
    if (!step.workspace.valid()) continue;
    list.push_back(place(step.workspace));
    list.back()["workspace_of"] = step.op.index();
  }
  return list;
}

Json document_of(const SolveInput& input, const planner::OpGraphFile& file,
                 const api::GraphSolution& solution) {
  const planner::Plan& plan = solution.plan;
  Json document;
  document["name"] = input.problem.name;
  document["planner"] = plan.strategy;
  document["feasible"] = true;
  document["cost"] = plan.cost;
  document["peak"] = solution.peak;
  document["floor"] = solution.floor;
  document["lower_bound"] = solution.certificate.lower_bound;
  document["optimal"] = solution.certificate.optimal;
  document["gap"] = solution.certificate.gap;
  document["budget"] = budget_document(input, solution.budget);
  document["keep_all_peak"] = solution.keep_all_peak;
  document["keep_all_cost"] = solution.keep_all_cost;
  document["recomputed"] = plan.recomputed;
  if (file.offers_choices) document["choices"] = choices_document(file, plan);
  document["schedule"] = schedule_document(file.problem, plan.order);
  if (input.flags.options.arena) {
    document["arena"] = plan.arena;
    document["live_peak"] = plan.live_peak;
    document["alignment"] = file.alignment;
    document["buffers"] = buffers_document(file.problem, plan);
  }
  return document;
}

void print_report(const SolveInput& input, const planner::OpGraphFile& file,
                  const api::GraphSolution& solution, Context& context) {
  const planner::Plan& plan = solution.plan;
  Facts facts;
  facts.add("planner", plan.strategy);
  facts.add("ops", fmt::format("{}, and {} runs beyond the first of an op",
                               grouped(static_cast<std::int64_t>(file.problem.ops.size())),
                               grouped(plan.recomputed)));
  facts.add("budget", budget_words(input, solution.budget));
  facts.add(input.flags.options.arena ? "arena" : "peak", exact_bytes(solution.peak));
  if (input.flags.options.arena) facts.add("live peak", exact_bytes(plan.live_peak));
  facts.add("keep all", exact_bytes(solution.keep_all_peak));
  facts.add("floor", exact_bytes(solution.floor));
  facts.add("cost", cost_words(plan.cost, solution.keep_all_cost));
  facts.add("certificate", certificate_text(solution.certificate));
  context.out << input.problem.name << "\n" << facts.text();
}

}  // namespace

int solve_form(const SolveInput& input, const planner::OpGraphFile& file, Context& context) {
  const auto outcome = while_waiting(context, "planning " + input.flags.file,
                                     [&] { return api::solve_graph(file, input.flags.options); });
  if (const auto* infeasible = std::get_if<planner::Infeasible>(&outcome)) {
    return report_no_plan(input, *infeasible, context);
  }
  const auto& solution = std::get<api::GraphSolution>(outcome);
  if (context.json) {
    print_flat(context, document_of(input, file, solution));
  } else {
    print_report(input, file, solution, context);
  }
  return kOk;
}

}  // namespace reprise::cli
