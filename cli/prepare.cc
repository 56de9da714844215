#include "cli/prepare.h"

#include "cli/report.h"
#include "cli/table.h"
#include "cli/waiting.h"
#include "fmt/format.h"

#include "api/chunk.h"

namespace reprise::cli {

std::optional<int> choose_chunk(const Flags& flags, api::TrainOptions& options, Context& context) {
  if (!options.choose_chunk) return std::nullopt;
  const auto outcome = while_waiting(context, "choosing a chunk for " + options.model,
                                     [&] { return api::choose_chunk(options); });
  if (const auto* infeasible = std::get_if<planner::Infeasible>(&outcome)) {
    return report_infeasible(context, *infeasible, options.model, options.session.plan.planner,
                             flags.budget_text);
  }
  const auto& choice = std::get<api::ChunkChoice>(outcome);
  for (const api::ChunkTrial& trial : choice.trials) {
    context.err << fmt::format(
        "chunk {}: {}{}\n", trial.chunk,
        trial.feasible ? "step of " + milliseconds(trial.cost_ns) + " in " : "needs ",
        base::format_bytes(trial.peak_bytes));
  }
  api::adopt(choice, options);
  return std::nullopt;
}

}  // namespace reprise::cli
