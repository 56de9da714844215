#pragma once

// Where measured costs live between runs: one cost table for each device (processor, libraries,
// threads), found again without being named.

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/profiler.h"

namespace reprise::runtime {

// $XDG_CACHE_HOME/reprise/costs, else ~/.cache/reprise/costs; nothing when the environment names
// neither (relative paths count as none, as the XDG specification says).
[[nodiscard]] std::optional<std::filesystem::path> cost_cache_folder();

// The file of a device: its description with plain letters, and a hash of it.
[[nodiscard]] std::filesystem::path cost_cache_file(const std::filesystem::path& folder,
                                                    const std::string& device);

struct CachedCosts {
  std::optional<CostTable> table;  // none: no file yet, or one that cannot be used
  std::string problem;             // why a file that is there cannot be used
};
// Never throws for what the file holds: a cache that is damaged, of another format or of another
// device is as good as none.
[[nodiscard]] CachedCosts read_cost_cache(const std::filesystem::path& file,
                                          const std::string& device);

// Adds the table's nodes to those of the file, newer ones in place of older ones, and makes the
// folders it needs. Processes that do so at once wait for each other; a reader sees the file before
// or after. A file that cannot be used is replaced; returns why, or "". Error(kDevice) when it
// cannot be written.
std::string add_to_cost_cache(const std::filesystem::path& file, const CostTable& table);

}  // namespace reprise::runtime
