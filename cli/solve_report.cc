#include "cli/solve_forms.h"
#include "cli/table.h"
#include "fmt/format.h"

namespace reprise::cli {

void print_flat(Context& context, const Json& document) {
  context.out << "{";
  const char* separator = "\n  ";
  for (const auto& [field, value] : document.items()) {
    context.out << separator << Json(field).dump() << ": "
                << value.dump(-1, ' ', false, Json::error_handler_t::replace);
    separator = ",\n  ";
  }
  context.out << "\n}\n";
}

Json budget_document(const SolveInput& input, Bytes budget) {
  return input.flags.options.budget.kind == api::Budget::Kind::kUnlimited ? Json() : Json(budget);
}

std::string budget_words(const SolveInput& input, Bytes budget) {
  return input.flags.options.budget.kind == api::Budget::Kind::kUnlimited ? "unlimited"
                                                                          : exact_bytes(budget);
}

std::string cost_words(std::int64_t cost, std::int64_t keep_all) {
  const double overhead =
      keep_all == 0 ? 0 : static_cast<double>(cost) / static_cast<double>(keep_all) - 1.0;
  return fmt::format("{}, {} over {} of keeping everything", grouped(cost), percent(overhead),
                     grouped(keep_all));
}

std::string certificate_text(const api::Certificate& certificate) {
  if (certificate.optimal) return "optimal: proven";
  return fmt::format("no plan costs less than {}; gap {:.2f} %", grouped(certificate.lower_bound),
                     certificate.gap * 100.0);
}

int report_no_plan(const SolveInput& input, const planner::Infeasible& infeasible,
                   Context& context) {
  const std::string& planner = input.flags.options.planner;
  std::string message = fmt::format(
      "--budget {} is too small: '{}' with planner {} needs at least {}", input.flags.budget_text,
      input.problem.name, planner, exact_bytes(infeasible.floor));
  if (!infeasible.bound_by.empty())
    message += fmt::format(", where '{}' binds", infeasible.bound_by);
  message += "; try --budget floor";
  if (planner != "auto") message += ", or --planner auto, which may need less";
  if (!context.json) {
    context.err << "error: " << message << "\n";
    return kInfeasible;
  }
  Json error = {{"kind", "infeasible"},
                {"message", message},
                {"floor_bytes", infeasible.floor},
                {"bound_by", infeasible.bound_by}};
  error["largest"] = Json::array();
  for (const planner::Infeasible::Holder& holder : infeasible.largest) {
    error["largest"].push_back({{"tensor", holder.tensor}, {"bytes", holder.bytes}});
  }
  print_flat(context,
             {{"feasible", false}, {"floor", infeasible.floor}, {"error", std::move(error)}});
  return kInfeasible;
}

}  // namespace reprise::cli
