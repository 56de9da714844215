#pragma once

// What commands say: the documents of --json, errors, and the answer to a budget that is too small.

#include <string>
#include <string_view>

#include "cli/command.h"
#include "nlohmann/json.hpp"

#include "api/trainer.h"
#include "planner/strategy.h"

namespace reprise::cli {

using Json = nlohmann::ordered_json;

// The fixed names of docs/cli.md.
[[nodiscard]] Json plan_document(const api::PlanReport& report);
// `costs` ("measured" or "analytic"), `costs_file`, `costs_date`.
void add_costs(Json& document, const api::CostOrigin& costs);
[[nodiscard]] Json train_document(const api::TrainReport& report);
[[nodiscard]] std::string hash_text(std::uint64_t hash);  // 16 hex digits

// "error: ..." on standard error, or {"error": {"kind", "message"}} under --json.
void report_error(Context& context, std::string_view kind, std::string_view message);

// What cannot be done and what can: floor, binding instruction, largest tensors, ways out.
[[nodiscard]] std::string infeasible_message(const planner::Infeasible& infeasible,
                                             std::string_view model, std::string_view planner,
                                             std::string_view budget_text);
// Says so and returns kInfeasible.
[[nodiscard]] int report_infeasible(Context& context, const planner::Infeasible& infeasible,
                                    std::string_view model, std::string_view planner,
                                    std::string_view budget_text);

// Peak, floor, cost, certificate: the lines both `plan` and `train` print.
[[nodiscard]] std::string plan_lines(const api::PlanReport& report);

}  // namespace reprise::cli
