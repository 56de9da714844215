#pragma once

// What a command is, and what it is given to run with.

#include <atomic>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"

namespace reprise::cli {

enum ExitCode : int {
  kOk = 0,
  kFailure = 1,     // a device, library or operating system failed; a plan file that breaks a rule
  kUsage = 2,       // a wrong flag, value or input file
  kInfeasible = 3,  // the budget is below the floor
  kOtherRankFailed = 4,  // another rank of the job, which is why this one ended
};

struct Context {
  std::ostream& out;                        // results
  std::ostream& err;                        // progress, notes, errors
  bool json = false;                        // one document on `out` and nothing else
  bool err_is_terminal = false;             // progress bars are drawn only there
  const std::atomic<bool>* stop = nullptr;  // set when the user asks to end
  void (*catch_signals)() = nullptr;        // may be empty; see begin_stoppable()

  // Prints the one document of --json.
  void print(const nlohmann::ordered_json& document) const;
  // From here on a signal sets `stop`, which the command heeds; until then it ends the process.
  void begin_stoppable() const;
};

// Runs after its flags are parsed and checked; returns an ExitCode. Faults are thrown as
// base::Error.
using Action = std::function<int(Context&)>;

struct Command {
  std::string_view name;
  std::string_view summary;      // one line of `reprise --help`
  Action (*add)(CLI::App& app);  // adds flags, description and examples to `app`
};

// One a file: train.cc, plan.cc, ...
[[nodiscard]] Action add_train(CLI::App& app);
[[nodiscard]] Action add_plan(CLI::App& app);
[[nodiscard]] Action add_profile(CLI::App& app);
[[nodiscard]] Action add_sweep(CLI::App& app);
[[nodiscard]] Action add_solve(CLI::App& app);
[[nodiscard]] Action add_show(CLI::App& app);
[[nodiscard]] Action add_verify(CLI::App& app);
[[nodiscard]] Action add_map(CLI::App& app);
[[nodiscard]] Action add_simulate(CLI::App& app);
[[nodiscard]] Action add_launch(CLI::App& app);
[[nodiscard]] Action add_doctor(CLI::App& app);

// All of them, in the order of the help.
[[nodiscard]] const std::vector<Command>& all_commands();

}  // namespace reprise::cli
