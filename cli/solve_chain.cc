// reprise solve on chains: Model C, stage by stage or all stages alike; and Revolve's counts.

#include "cli/solve_forms.h"
#include "cli/table.h"
#include "cli/waiting.h"
#include "fmt/format.h"

#include "base/error.h"
#include "planner/chain/revolve_counts.h"
#include "planner/chain/simulate.h"

namespace reprise::cli {
namespace {

using planner::ChainStep;

// Longer plans are listed in runs.
constexpr std::int64_t kMostListed = 100'000;

Json instructions_document(const planner::ChainProgram& program) {
  Json list = Json::array();
  program.for_each([&](planner::ChainInstruction at) {
    if (at.step == ChainStep::kLoss) {
      list.push_back(Json::array({planner::chain_step_name(at.step)}));
    } else {
      list.push_back(Json::array({planner::chain_step_name(at.step), at.stage}));
    }
  });
  return list;
}

Json runs_document(const planner::ChainProgram& program) {
  Json list = Json::array();
  for (const planner::ChainRun& run : program.runs()) {
    list.push_back(Json::array({planner::chain_step_name(run.step), run.stage, run.count}));
  }
  return list;
}

const char* proof_name(planner::ChainProof proof) {
  switch (proof) {
    case planner::ChainProof::kNone:
      return "none";
    case planner::ChainProof::kPersistent:
      return "persistent";
    case planner::ChainProof::kAll:
      return "all";
  }
  return "";
}

Json document_of(const SolveInput& input, const api::ChainSolution& solution) {
  const planner::ChainPlan& plan = solution.plan;
  const bool runs = plan.program.instruction_count() > kMostListed;
  Json document;
  document["name"] = input.problem.name;
  document["planner"] = "chain";
  document["feasible"] = true;
  document["cost"] = plan.cost;
  document["peak"] = plan.peak;
  document["floor"] = plan.floor;
  document["lower_bound"] = plan.lower_bound;
  document["optimal"] = solution.certificate.optimal;
  document["optimal_among"] = proof_name(plan.optimal);
  document["persistent_bound"] = plan.persistent_bound;
  document["gap"] = solution.certificate.gap;
  document["budget"] = budget_document(input, solution.budget);
  document["keep_all_peak"] = solution.keep_all_peak;
  document["keep_all_cost"] = solution.keep_all_cost;
  document["instructions"] = plan.program.instruction_count();
  document["run_length"] = runs;
  document["schedule"] = runs ? runs_document(plan.program) : instructions_document(plan.program);
  return document;
}

std::string proof_text(const planner::ChainPlan& plan, const api::Certificate& certificate) {
  if (plan.optimal != planner::ChainProof::kPersistent) return certificate_text(certificate);
  return fmt::format("optimal among schedules that keep what they kept; {}",
                     certificate_text(certificate));
}

void print_report(const SolveInput& input, std::int64_t stages, const api::ChainSolution& solution,
                  Context& context) {
  const planner::ChainPlan& plan = solution.plan;
  Facts facts;
  facts.add("stages", grouped(stages));
  facts.add("budget", budget_words(input, solution.budget));
  facts.add("peak", exact_bytes(plan.peak));
  facts.add("keep all", exact_bytes(solution.keep_all_peak));
  facts.add("floor", exact_bytes(plan.floor));
  facts.add("cost", cost_words(plan.cost, solution.keep_all_cost));
  facts.add("instructions", grouped(plan.program.instruction_count()));
  facts.add("certificate", proof_text(plan, solution.certificate));
  context.out << input.problem.name << "\n" << facts.text();
}

void refuse_flags_of_op_graphs(const SolveFlags& flags) {
  if (flags.options.arena || flags.order_given) {
    throw base::input_error(
        "{}: a chain has one order and no buffers; --order and --arena are for op graphs",
        flags.file);
  }
}

template <class File>
int solve_any_chain(const SolveInput& input, const File& file, std::int64_t stages,
                    Context& context) {
  refuse_flags_of_op_graphs(input.flags);
  const auto outcome = while_waiting(context, "planning " + input.flags.file,
                                     [&] { return api::solve_chain(file, input.flags.options); });
  if (const auto* below = std::get_if<planner::ChainInfeasible>(&outcome)) {
    return report_no_plan(input, {.floor = below->floor, .bound_by = "", .largest = {}}, context);
  }
  const auto& solution = std::get<api::ChainSolution>(outcome);
  if (context.json) {
    print_flat(context, document_of(input, solution));
  } else {
    print_report(input, stages, solution, context);
  }
  return kOk;
}

}  // namespace

int solve_form(const SolveInput& input, const planner::ChainFile& file, Context& context) {
  return solve_any_chain(input, file, static_cast<std::int64_t>(file.chain.stages.size()), context);
}

int solve_form(const SolveInput& input, const planner::UniformChainFile& file, Context& context) {
  return solve_any_chain(input, file, file.chain.steps, context);
}

int solve_form(const SolveInput& input, const planner::RevolveFile& file, Context& context) {
  refuse_flags_of_op_graphs(input.flags);
  if (input.flags.budget_given) {
    throw base::input_error("{}: its checkpoints are its budget; --budget has no meaning",
                            input.flags.file);
  }
  const planner::RevolveCounts counts = planner::revolve_counts(file.steps, file.checkpoints);
  // Each step is recorded once as well.
  const std::int64_t total =
      base::checked_add(counts.extra_forwards, file.steps, "forward runs of all steps");
  if (context.json) {
    print_flat(context, {{"name", input.problem.name},
                         {"planner", "revolve"},
                         {"feasible", true},
                         {"cost", total},
                         {"lower_bound", total},
                         {"optimal", true},
                         {"repetitions", counts.repetitions},
                         {"extra_forwards", counts.extra_forwards},
                         {"total_forwards", total}});
    return kOk;
  }
  Facts facts;
  facts.add("steps", grouped(file.steps));
  facts.add("checkpoints", grouped(file.checkpoints));
  facts.add("forward runs", fmt::format("{}, {} of them only to advance", grouped(total),
                                        grouped(counts.extra_forwards)));
  facts.add("repetitions", fmt::format("at most {} of a step", grouped(counts.repetitions)));
  context.out << input.problem.name << "\n" << facts.text();
  return kOk;
}

}  // namespace reprise::cli
