#pragma once

// Which costs a plan weighs recomputation with: measured ones (docs/costs.md) or the backend's
// analytic ones.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "graph/prepared.h"
#include "kernels/backend.h"

namespace reprise::api {

// What a user asks for.
struct CostChoice {
  enum class Kind : std::uint8_t {
    kAnalytic,
    kAuto,  // the device's table in the cache, where it has every node of the graph; else analytic
    kFile,  // what the file has; analytic for the rest
  } kind = Kind::kAnalytic;
  std::filesystem::path file{};
};
[[nodiscard]] CostChoice parse_costs(std::string_view text);  // "auto", "analytic", or a file

// What was used.
struct CostOrigin {
  bool measured = false;
  std::string file{};            // of the measured ones
  std::int64_t measured_at = 0;  // seconds since 1970 of the oldest among them
  std::string note{};            // what a user should know about a table that did not serve, or ""
};
// "measured (costs.json, 2026-03-01)", "analytic".
[[nodiscard]] std::string cost_origin_text(const CostOrigin& origin);
[[nodiscard]] std::string date_text(std::int64_t seconds);  // UTC, "2026-03-01"

// What costs depend on beside the node: processor, libraries, instruction set, threads.
[[nodiscard]] std::string cost_device(const kernels::Backend& backend);

// Puts the chosen costs into the graph. Only kFile throws: Error(kInput) for a file that cannot be
// read. Cached costs are all or none: a plan that weighs measured nodes against estimated ones
// would be worse than one that estimates all.
CostOrigin choose_costs(const CostChoice& choice, const kernels::Backend& backend,
                        graph::PreparedGraph& prepared);

}  // namespace reprise::api
