#pragma once

// What the operating system says about the processor.

#include <string>
#include <string_view>
#include <vector>

namespace reprise::runtime {

struct ProcessorInfo {
  std::string model;                    // "unknown" when the system does not say
  int cores = 0;                        // this process may run on them (affinity)
  std::vector<std::string> extensions;  // vector extensions that matter here: "avx2", "avx512f"
};
[[nodiscard]] ProcessorInfo read_processor();

// Picks model name and extensions out of a text in the form of /proc/cpuinfo.
[[nodiscard]] ProcessorInfo parse_cpuinfo(std::string_view text);

}  // namespace reprise::runtime
