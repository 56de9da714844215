#include "runtime/processor_info.h"

#include <algorithm>
#include <fstream>
#include <sched.h>
#include <sstream>

namespace reprise::runtime {
namespace {

// In the order of what they bring.
constexpr const char* kExtensions[] = {"sse4_2",      "avx",      "avx2",
                                       "fma",         "avx512f",  "avx512_vnni",
                                       "avx512_bf16", "amx_bf16", "amx_tile"};

std::string_view after_colon(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return {};
  const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
  return begin == std::string_view::npos ? std::string_view{} : line.substr(begin);
}

}  // namespace

ProcessorInfo parse_cpuinfo(std::string_view text) {
  ProcessorInfo info{.model = "unknown", .cores = 0, .extensions = {}};
  std::istringstream lines{std::string(text)};
  std::vector<std::string> flags;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("model name") && info.model == "unknown") info.model = after_colon(line);
    if (!line.starts_with("flags") || !flags.empty()) continue;
    std::istringstream words{std::string(after_colon(line))};
    for (std::string word; words >> word;) flags.push_back(word);
  }
  for (const char* extension : kExtensions) {
    if (std::find(flags.begin(), flags.end(), extension) == flags.end()) continue;
    info.extensions.emplace_back(extension);
  }
  return info;
}

ProcessorInfo read_processor() {
  std::ifstream file("/proc/cpuinfo");
  std::ostringstream text;
  text << file.rdbuf();
  ProcessorInfo info = parse_cpuinfo(text.str());
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) info.cores = CPU_COUNT(&cores);
  return info;
}

}  // namespace reprise::runtime
