#include "api/costs.h"

#include <ctime>

#include "base/error.h"
#include "runtime/cost_cache.h"
#include "runtime/processor_info.h"
#include "runtime/profiler.h"

namespace reprise::api {
namespace {

CostOrigin measured_by(const runtime::CostTable& table, const std::filesystem::path& file,
                       graph::PreparedGraph& prepared) {
  (void)runtime::apply_costs(table, prepared);
  return {.measured = true,
          .file = file.string(),
          .measured_at = runtime::oldest_measure(table, prepared),
          .note = {}};
}

CostOrigin from_cache(const std::string& device, graph::PreparedGraph& prepared) {
  const auto folder = runtime::cost_cache_folder();
  if (!folder) return {};
  const auto file = runtime::cost_cache_file(*folder, device);
  const runtime::CachedCosts cached = runtime::read_cost_cache(file, device);
  if (!cached.problem.empty()) {
    return {.note = fmt::format("the cost cache is not used: {}; 'reprise profile' replaces it",
                                cached.problem)};
  }
  if (!cached.table || runtime::count_missing(*cached.table, prepared) > 0) return {};
  return measured_by(*cached.table, file, prepared);
}

CostOrigin from_file(const std::filesystem::path& file, const std::string& device,
                     graph::PreparedGraph& prepared) {
  const runtime::CostTable table = runtime::load_costs(file);
  const std::int64_t missing = runtime::count_missing(table, prepared);
  if (missing > 0 && runtime::oldest_measure(table, prepared) == 0) {
    return {.note = fmt::format("'{}' has none of this step's nodes: costs are analytic",
                                file.string())};
  }
  CostOrigin origin = measured_by(table, file, prepared);
  if (table.device != device) {
    origin.note = fmt::format("the costs in '{}' were measured on '{}'; this is '{}'",
                              file.string(), table.device, device);
  } else if (missing > 0) {
    origin.note = fmt::format("'{}' lacks {} nodes of this step: their costs are analytic",
                              file.string(), missing);
  }
  return origin;
}

}  // namespace

CostChoice parse_costs(std::string_view text) {
  if (text == "auto") return {.kind = CostChoice::Kind::kAuto};
  if (text == "analytic") return {.kind = CostChoice::Kind::kAnalytic};
  if (text.empty()) throw base::input_error("costs '': expected auto, analytic or a file");
  return {.kind = CostChoice::Kind::kFile, .file = std::filesystem::path(text)};
}

std::string date_text(std::int64_t seconds) {
  const std::time_t time = static_cast<std::time_t>(seconds);
  std::tm parts = {};
  if (gmtime_r(&time, &parts) == nullptr) return "?";
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

std::string cost_origin_text(const CostOrigin& origin) {
  if (!origin.measured) return "analytic";
  return fmt::format("measured ({}, {})", origin.file, date_text(origin.measured_at));
}

std::string cost_device(const kernels::Backend& backend) {
  return fmt::format("{}; {}", runtime::read_processor().model, backend.description());
}

CostOrigin choose_costs(const CostChoice& choice, const kernels::Backend& backend,
                        graph::PreparedGraph& prepared) {
  switch (choice.kind) {
    case CostChoice::Kind::kAnalytic:
      return {};
    case CostChoice::Kind::kAuto:
      return from_cache(cost_device(backend), prepared);
    case CostChoice::Kind::kFile:
      return from_file(choice.file, cost_device(backend), prepared);
  }
  return {};
}

}  // namespace reprise::api
