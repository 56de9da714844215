#include "cli/report.h"

#include "cli/table.h"
#include "fmt/format.h"

namespace reprise::cli {
namespace {

Json error_document(std::string_view kind, std::string_view message) {
  Json error;
  error["kind"] = kind;
  error["message"] = message;
  return error;
}

std::string certificate(const api::PlanReport& report) {
  if (report.lower_bound_ns >= report.cost_ns) return "optimal: no schedule costs less";
  return fmt::format("no schedule costs less than {}; gap {:.2f} %",
                     milliseconds(report.lower_bound_ns), report.gap * 100.0);
}

}  // namespace

void Context::print(const nlohmann::ordered_json& document) const {
  // Names of files need not be UTF-8; what is not is replaced rather than refused.
  out << document.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

void Context::begin_stoppable() const {
  if (catch_signals != nullptr) catch_signals();
}

void add_costs(Json& document, const api::CostOrigin& costs) {
  document["costs"] = costs.measured ? "measured" : "analytic";
  document["costs_file"] = costs.measured ? Json(costs.file) : Json(nullptr);
  document["costs_date"] = costs.measured ? Json(api::date_text(costs.measured_at)) : Json(nullptr);
}

Json plan_document(const api::PlanReport& report) {
  Json document;
  document["model"] = report.model;
  document["planner"] = report.planner;
  document["nodes"] = report.nodes;
  document["micro_batches"] = report.micro_batches;
  document["precision"] = report.precision;
  document["chunk"] = report.chunk > 0 ? Json(report.chunk) : Json(nullptr);
  document["budget_bytes"] = report.budget_bytes;
  document["peak_bytes"] = report.peak_bytes;
  document["floor_bytes"] = report.floor_bytes;
  document["memory_bound_bytes"] = report.memory_bound_bytes;
  document["keep_all_bytes"] = report.keep_all_bytes;
  document["persistent_bytes"] = report.persistent_bytes;
  document["cost_ns"] = report.cost_ns;
  document["keep_all_cost_ns"] = report.keep_all_cost_ns;
  document["overhead"] = report.overhead;
  document["lower_bound_ns"] = report.lower_bound_ns;
  document["gap"] = report.gap;
  document["recomputed_nodes"] = report.recomputed_nodes;
  document["fragmentation"] = report.fragmentation;
  document["plan_ms"] = report.plan_ms;
  add_costs(document, report.costs);
  return document;
}

std::string hash_text(std::uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

Json train_document(const api::TrainReport& report) {
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json document;
  document["plan"] = plan_document(report.plan);
  document["steps"] = report.steps;
  document["stopped_early"] = report.stopped_early;
  document["losses"] = report.losses;
  document["ms_per_step"] = report.ms_per_step;
  document["data_ms_per_step"] = report.data_ms_per_step;
  document["predicted_ms_per_step"] = report.predicted_ms_per_step;
  document["peak_bytes_measured"] = report.peak_bytes_measured;
  document["grad_norm"] = optional(report.grad_norm);
  document["skipped_steps"] = report.skipped_steps;
  document["process_overhead_bytes"] = report.process_overhead_bytes;
  document["device_overhead_bytes"] = optional(report.device_overhead_bytes);
  document["state_hash"] = hash_text(report.state_hash);
  document["resumed_from"] = optional(report.resumed_from);
  document["world_size"] = report.world_size;
  document["test_accuracy"] = optional(report.test_accuracy);
  document["test_loss"] = optional(report.test_loss);
  document["trace"] = report.trace_file ? Json(report.trace_file->string()) : Json(nullptr);
  document["warnings"] = report.warnings;
  return document;
}

void report_error(Context& context, std::string_view kind, std::string_view message) {
  if (context.json) {
    Json document;
    document["error"] = error_document(kind, message);
    context.print(document);
  } else {
    context.err << "error: " << message << "\n";
  }
}

std::string infeasible_message(const planner::Infeasible& infeasible, std::string_view model,
                               std::string_view planner, std::string_view budget_text) {
  std::string text = fmt::format(
      "--budget {} is too small: {} with planner {} needs at least {}.\n"
      "At that floor '{}' binds: what it reads, writes and books, beside what later steps need.\n",
      budget_text, model, planner, exact_bytes(infeasible.floor), infeasible.bound_by);
  if (!infeasible.largest.empty()) {
    text += "The largest tensors there:\n";
    Table table({{"tensor", Table::Align::kLeft}, {"bytes"}, {""}});
    for (const planner::Infeasible::Holder& holder : infeasible.largest) {
      table.add({holder.tensor, grouped(holder.bytes), base::format_bytes(holder.bytes)});
    }
    text += table.text();
  }
  text += fmt::format("Try --budget {} (or --budget floor), a smaller --batch", infeasible.floor);
  text += planner == "auto" ? "." : ", or --planner auto, which may need less.";
  return text;
}

int report_infeasible(Context& context, const planner::Infeasible& infeasible,
                      std::string_view model, std::string_view planner,
                      std::string_view budget_text) {
  const std::string message = infeasible_message(infeasible, model, planner, budget_text);
  if (!context.json) {
    context.err << "error: " << message << "\n";
    return kInfeasible;
  }
  Json error = error_document("infeasible", message);
  error["floor_bytes"] = infeasible.floor;
  error["bound_by"] = infeasible.bound_by;
  error["largest"] = Json::array();
  for (const planner::Infeasible::Holder& holder : infeasible.largest) {
    error["largest"].push_back({{"tensor", holder.tensor}, {"bytes", holder.bytes}});
  }
  Json document;
  document["error"] = std::move(error);
  context.print(document);
  return kInfeasible;
}

std::string plan_lines(const api::PlanReport& report) {
  Facts facts;
  facts.add("planner", report.planner);
  facts.add("nodes", fmt::format("{}, and {} runs beyond the first of a node",
                                 grouped(report.nodes), grouped(report.recomputed_nodes)));
  facts.add("precision", report.precision == "f32" ? "f32" : report.precision + ", of f32 weights");
  if (report.micro_batches > 1)
    facts.add("accumulation", fmt::format("{} micro-batches a step", report.micro_batches));
  if (report.chunk > 0) facts.add("chunk", fmt::format("{} time steps a node", report.chunk));
  facts.add("budget", exact_bytes(report.budget_bytes));
  facts.add("peak", exact_bytes(report.peak_bytes));
  facts.add("keep all", exact_bytes(report.keep_all_bytes));
  if (report.floor_bytes > 0)
    facts.add("floor",
              fmt::format("{}, of planner auto; no schedule takes less than {}",
                          exact_bytes(report.floor_bytes), exact_bytes(report.memory_bound_bytes)));
  facts.add("step", fmt::format("{} planned, {} over {} of keeping everything",
                                milliseconds(report.cost_ns), percent(report.overhead),
                                milliseconds(report.keep_all_cost_ns)));
  facts.add("costs", api::cost_origin_text(report.costs));
  facts.add("certificate", certificate(report));
  facts.add("fragmentation", fmt::format("{:.2f} %", report.fragmentation * 100.0));
  return facts.text();
}

}  // namespace reprise::cli
