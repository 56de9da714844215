#include "cli/run.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/report.h"
#include "cli/values.h"
#include "cli/version.h"
#include "fmt/ranges.h"

#include "api/trainer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "runtime/comm/comm_error.h"
#include "runtime/memory_info.h"

namespace reprise::cli {
namespace {

std::string overview() {
  std::string text =
      "reprise: trains neural networks inside a memory budget given in bytes.\n"
      "\n"
      "It plans a whole training step before the first kernel runs: which activations to keep and\n"
      "which to compute again, so that the step fits the budget to the byte and loses little "
      "time.\n"
      "\n"
      "Usage:\n"
      "  reprise COMMAND [FLAGS]\n"
      "\n"
      "Commands:\n";
  for (const Command& command : all_commands()) {
    text += fmt::format("  {:<10}{}\n", command.name, command.summary);
  }
  text +=
      "\n"
      "Examples:\n"
      "  reprise train --model resnet20 --data fashion-mnist --budget 40% --epochs 1\n"
      "  reprise plan  --model resnet50 --batch 32 --budget 2GiB\n"
      "  reprise sweep --model resnet110 --planners segments,auto --csv sweep.csv\n"
      "\n"
      "'reprise COMMAND --help' explains a command and its flags. Every command takes --json.\n"
      "Exit codes: 0 fine, 1 failure, 2 wrong usage or input, 3 budget infeasible,\n"
      "4 another rank of the job failed.\n";
  return text;
}

const Command* find_command(const std::string& name) {
  const auto& commands = all_commands();
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const Command& command) { return command.name == name; });
  return found == commands.end() ? nullptr : &*found;
}

base::Error unknown_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : all_commands()) names.emplace_back(command.name);
  const std::string near = nearest_word(name, names);
  return base::input_error("unknown command '{}'{}; 'reprise --help' lists the commands", name,
                           near.empty() ? "" : fmt::format(" (did you mean {}?)", near));
}

// "--batch: given 2 times", in our words: CLI11 begins each of these with the flag's name.
std::string known_flag_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  const std::string name = what.substr(0, what.find_first_of(": "));
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option == nullptr) return what;
  const std::string type = option->get_type_name();
  const std::string label = option->get_positional() ? type : name;
  if (error.get_name() == "ExcludesError") {
    return fmt::format("{}: leave one of the two out", what);
  }
  if (error.get_name() == "RequiredError") {
    return label == type ? fmt::format("{} is missing", type)
                         : fmt::format("{} {} is missing", name, type);
  }
  if (error.get_name() != "ArgumentMismatch") return what;
  if (option->results().size() > 1) {
    return fmt::format("{} is given {} times ({}); give it once", label, option->results().size(),
                       fmt::join(option->results(), ", "));
  }
  return fmt::format("{}: its value is missing; expected {}", label, type);
}

// What CLI11 finds wrong, in our words where its own do not name the flag's neighbour.
base::Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) {
    return base::input_error("reprise {}: {}; 'reprise {} --help' lists its flags", app.get_name(),
                             known_flag_error(app, error), app.get_name());
  }
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back(fmt::format("--{}", name));
  }
  const std::string word = extras.front().substr(0, extras.front().find('='));
  const bool is_flag = word.starts_with('-');
  const std::string near = is_flag ? nearest_word(word, flags) : std::string();
  return base::input_error("reprise {}: {} '{}'{}; 'reprise {} --help' lists its flags",
                           app.get_name(), is_flag ? "unknown flag" : "unexpected argument", word,
                           near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                           app.get_name());
}

// CLI11 would take "--augment=5" for "--augment".
void require_no_value(const CLI::App& app, const std::vector<std::string>& args) {
  for (const std::string& arg : args) {
    if (arg == "--") return;
    const std::size_t equals = arg.find('=');
    if (!arg.starts_with("--") || equals == std::string::npos) continue;
    const std::string name = arg.substr(0, equals);
    const CLI::Option* option = app.get_option_no_throw(name);
    if (option != nullptr && option->get_expected_min() == 0) {
      throw base::input_error("reprise {}: {} '{}': the flag takes no value", app.get_name(), name,
                              arg.substr(equals + 1));
    }
  }
}

int run_command(const Command& command, std::vector<std::string> args, Context& context) {
  CLI::App app(std::string(command.summary), std::string(command.name));
  app.formatter(std::make_shared<HelpFormatter>());
  const Action action = command.add(app);
  app.add_flag("--json", context.json,
               "print one JSON document on standard output and nothing else")
      ->group("Output");
  app.set_help_flag("-h,--help", "print this help")->group("Output");
  require_no_value(app, args);
  std::reverse(args.begin(), args.end());  // CLI11 takes its arguments from the back
  try {
    app.parse(std::move(args));
  } catch (const CLI::CallForHelp&) {
    context.out << app.help("reprise");
    return kOk;
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error);
  }
  return action(context);
}

int dispatch(const std::vector<std::string>& args, Context& context) {
  if (args.empty()) {
    if (context.json) throw base::input_error("a command is missing");
    context.err << overview();
    return kUsage;
  }
  std::string name = args.front();
  std::vector<std::string> rest(args.begin() + 1, args.end());
  if (name == "help" && !rest.empty()) {
    name = rest.front();
    rest = {"--help"};
  }
  if (name == "--help" || name == "-h" || name == "help") {
    context.out << overview();
    return kOk;
  }
  if (name == "--version") {
    context.out << "reprise " << kVersion << "\n";
    return kOk;
  }
  const Command* command = find_command(name);
  if (command == nullptr) throw unknown_command(name);
  return run_command(*command, std::move(rest), context);
}

std::string out_of_memory() {
  const base::Bytes available = runtime::available_memory_bytes();
  return fmt::format(
      "the host is out of memory: {} bytes ({}) are available; use a smaller --batch, model or "
      "data set, or a tighter --budget",
      available, base::format_bytes(available));
}

int guarded(const std::vector<std::string>& args, Context& context) {
  try {
    return dispatch(args, context);
  } catch (const api::Diverged& error) {
    report_error(context, "diverged", error.what());
    return kFailure;
  } catch (const runtime::comm::CommError& error) {
    report_error(context, base::error_kind_name(error.kind()), error.what());
    const auto& culprit = error.failure().rank;
    return culprit && *culprit != error.rank() ? kOtherRankFailed : kFailure;
  } catch (const base::Error& error) {
    report_error(context, base::error_kind_name(error.kind()), error.what());
    return error.kind() == base::ErrorKind::kInput ? kUsage : kFailure;
  } catch (const std::bad_alloc&) {
    report_error(context, "device", out_of_memory());
    return kFailure;
  } catch (const std::exception& error) {
    report_error(context, "internal", error.what());
    return kFailure;
  }
}

}  // namespace

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = {
      {"train", "train a model within a budget", add_train},
      {"plan", "what a budget means: kept, recomputed, peak, cost", add_plan},
      {"sweep", "time against memory, over many budgets and planners", add_sweep},
      {"solve", "the planner alone, on a problem file", add_solve},
      {"profile", "measure what each node costs on this device", add_profile},
      {"show", "print a plan file", add_show},
      {"verify", "check a plan file against every rule", add_verify},
      {"map", "draw a plan's memory map as SVG", add_map},
      {"simulate", "estimate the step of a plan on many ranks", add_simulate},
      {"launch", "several ranks on this machine, ended together", add_launch},
      {"doctor", "devices, libraries, data sets: what will be used", add_doctor},
  };
  return commands;
}

int run(const std::vector<std::string>& args, std::ostream& out, std::ostream& err,
        const RunOptions& options) {
  // Known before parsing, so that a parse error is a document too.
  const auto own = std::find(args.begin(), args.end(), "--");  // behind it come another's flags
  const bool json = std::find(args.begin(), own, "--json") != own;
  Context context{.out = out,
                  .err = err,
                  .json = json,
                  .err_is_terminal = options.err_is_terminal,
                  .stop = options.stop,
                  .catch_signals = options.before_stoppable};
  const int code = guarded(args, context);
  out.flush();
  if (code == kOk && !out) {
    err << "error: standard output could not be written\n";
    return kFailure;
  }
  return code;
}

}  // namespace reprise::cli
