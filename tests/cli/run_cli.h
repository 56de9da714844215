#pragma once

// Runs the program in this process and keeps what it said.

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "cli/run.h"
#include "nlohmann/json.hpp"

#include "tests/runtime/temp_folder.h"

namespace reprise::cli {

// Whatever the user of this machine has measured must not change what the tests plan. Tests of the
// cache name folders of their own.
inline const bool kCacheIsElsewhere =
    setenv("XDG_CACHE_HOME", "/nonexistent/reprise-tests", 1) == 0;

struct Ran {
  int code = -1;
  std::string out, err;

  // The one document of --json; fails the parse, and so the test, when there is anything else.
  [[nodiscard]] nlohmann::json document() const { return nlohmann::json::parse(out); }
  [[nodiscard]] std::string error_message() const {
    return document().at("error").at("message").get<std::string>();
  }
};

inline Ran run_cli(const std::vector<std::string>& args, const RunOptions& options = {}) {
  std::ostringstream out, err;
  const int code = run(args, out, err, options);
  return {code, out.str(), err.str()};
}

// `args` followed by `more`.
inline std::vector<std::string> with(std::vector<std::string> args,
                                     const std::vector<std::string>& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// A network that plans in a tenth of a second and trains in milliseconds. Its activations (16 KiB a
// layer) outweigh its weights (1 KiB a layer), so that there is something to recompute.
inline const std::vector<std::string> kTiny = {
    "--model", "mlp",      "--batch", "256",       "--image", "1x4x4",     "--hidden",
    "16",      "--layers", "4",       "--classes", "3",       "--threads", "1"};

using runtime::testing::read_file;
using runtime::testing::TempFolder;
using runtime::testing::write_file;

}  // namespace reprise::cli
