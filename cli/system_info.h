#pragma once

// What this machine and this build are, for `reprise doctor`.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::cli {

struct ProcessorInfo {
  std::string model;                    // "unknown" when the system does not say
  int cores = 0;                        // this process may run on them (affinity)
  std::vector<std::string> extensions;  // vector extensions that matter here: "avx2", "avx512f"
};
[[nodiscard]] ProcessorInfo read_processor();

// Picks model name and extensions out of a text in the form of /proc/cpuinfo.
[[nodiscard]] ProcessorInfo parse_cpuinfo(std::string_view text);

// Libraries and compiler with the versions that this program was built with.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> build_versions();

}  // namespace reprise::cli
