#pragma once

// What this build is, for `reprise doctor`.

#include <string>
#include <utility>
#include <vector>

namespace reprise::cli {

// Libraries and compiler with the versions that this program was built with.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> build_versions();

}  // namespace reprise::cli
