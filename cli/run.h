#pragma once

// The whole program as a function, so that tests can call it.

#include <atomic>
#include <ostream>
#include <string>
#include <vector>

namespace reprise::cli {

struct RunOptions {
  bool err_is_terminal = false;             // progress bars are drawn only there
  const std::atomic<bool>* stop = nullptr;  // set when the user asks to end
  // Called when a command begins to heed `stop`: the place to catch signals.
  void (*before_stoppable)() = nullptr;
};

// Runs one command line (without the program's name) and returns its exit code: 0 fine, 1 failure,
// 2 wrong usage or input, 3 budget infeasible. With --json, exactly one document goes to `out`.
// Never throws.
[[nodiscard]] int run(const std::vector<std::string>& args, std::ostream& out, std::ostream& err,
                      const RunOptions& options = {});

}  // namespace reprise::cli
