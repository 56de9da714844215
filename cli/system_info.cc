#include "cli/system_info.h"

#include <zlib.h>

#include "CLI/Version.hpp"
#include "cli/version.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace reprise::cli {

std::vector<std::pair<std::string, std::string>> build_versions() {
  return {{"reprise", kVersion},
          {"compiler", __VERSION__},
          {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                              FMT_VERSION % 100)},
          {"nlohmann-json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                        NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
          {"CLI11", CLI11_VERSION},
          {"zlib", zlibVersion()}};
}

}  // namespace reprise::cli
