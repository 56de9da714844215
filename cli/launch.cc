// reprise launch: starts the ranks of a job on this machine, and ends them together.

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/values.h"
#include "fmt/format.h"

#include "base/error.h"
#include "runtime/comm/launcher.h"
#include "runtime/processor_info.h"

namespace reprise::cli {
namespace {

using runtime::comm::LaunchOptions;
using runtime::comm::LaunchResult;
using runtime::comm::RankEnd;

struct LaunchFlags {
  LaunchOptions launch{};
  std::vector<std::string> command;
};

// `train ...` alone stands for this program's command.
std::vector<std::string> full_command(std::vector<std::string> command) {
  const auto& commands = all_commands();
  const bool own = !command.empty() &&
                   std::any_of(commands.begin(), commands.end(),
                               [&](const Command& each) { return each.name == command.front(); });
  if (own) command.insert(command.begin(), "/proc/self/exe");
  return command;
}

// All ranks together use no more threads than there are cores, unless the user says otherwise.
int choose_threads(const LaunchOptions& launch, Context& context) {
  const int cores = runtime::read_processor().cores;
  const char* asked = std::getenv("OMP_NUM_THREADS");
  if (asked == nullptr || *asked == '\0') {
    const int threads = runtime::comm::threads_per_rank(cores, launch.ranks);
    context.err << fmt::format("launch: {} rank{} of {} thread{} each, on {} cores\n", launch.ranks,
                               launch.ranks == 1 ? "" : "s", threads, threads == 1 ? "" : "s",
                               cores);
    if (launch.ranks > cores) {
      context.err << fmt::format("launch: warning: more ranks than cores: they take turns\n");
    }
    return threads;
  }
  const int threads = std::atoi(asked);
  context.err << fmt::format(
      "launch: {} rank{} of {} threads each (OMP_NUM_THREADS), on {} cores\n", launch.ranks,
      launch.ranks == 1 ? "" : "s", asked, cores);
  if (threads * launch.ranks > cores) {
    context.err << fmt::format(
        "launch: warning: {} threads in all are more than {} cores; unset OMP_NUM_THREADS, or set "
        "it to {}\n",
        threads * launch.ranks, cores, runtime::comm::threads_per_rank(cores, launch.ranks));
  }
  return 0;
}

nlohmann::ordered_json document_of(const LaunchResult& result) {
  const auto describe = [](const RankEnd& end) {
    return nlohmann::ordered_json{
        {"rank", end.rank}, {"exit_code", end.code}, {"signal", end.signal}};
  };
  nlohmann::ordered_json document;
  document["ranks"] = nlohmann::ordered_json::array();
  for (const RankEnd& end : result.ends) document["ranks"].push_back(describe(end));
  document["failed_first"] =
      result.first ? describe(*result.first) : nlohmann::ordered_json(nullptr);
  return document;
}

int run_launch(const LaunchFlags& flags, Context& context) {
  LaunchOptions launch = flags.launch;
  launch.command = full_command(flags.command);
  if (launch.command.empty()) {
    throw base::input_error(
        "launch: what is to run comes behind --, as in 'reprise launch -n 2 -- train --model mlp'");
  }
  launch.threads = choose_threads(launch, context);
  launch.stop = context.stop;
  const auto to_error = [&](std::string_view line) { (context.err << line).flush(); };
  const auto to_output = [&](std::string_view line) { (context.out << line).flush(); };
  launch.error = to_error;
  launch.output = context.json ? std::function<void(std::string_view)>(to_error) : to_output;
  context.begin_stoppable();
  const LaunchResult result = runtime::comm::launch(launch);
  if (context.json) context.print(document_of(result));
  if (result.first) {
    // Where all ranks of this machine ended because of another, that one is elsewhere.
    const bool cause = result.first->code != runtime::comm::kExitOtherRankFailed;
    context.err << fmt::format("launch: {}{}\n", result.first->text(),
                               result.ends.size() > 1 && cause ? "; it failed first" : "");
  }
  return result.exit_code();
}

}  // namespace

Action add_launch(CLI::App& app) {
  const auto flags = std::make_shared<LaunchFlags>();
  LaunchOptions& launch = flags->launch;
  add_value(app, "-n,--ranks", "NUMBER", "ranks on this machine", [&](const std::string& text) {
    launch.ranks = static_cast<int>(parse_whole("--ranks", text, 1, 4096));
  });
  add_value(app, "--nnodes", "NUMBER", "machines that take part, each with as many ranks",
            [&](const std::string& text) {
              launch.nodes = static_cast<int>(parse_whole("--nnodes", text, 1, 65536));
            });
  add_value(app, "--node-rank", "NUMBER", "which of them this is, from 0",
            [&](const std::string& text) {
              launch.node = static_cast<int>(parse_whole("--node-rank", text, 0, 65535));
            });
  add_value(app, "--master-addr", "HOST", "machine 0, as the others reach it",
            [&](const std::string& text) { launch.master_address = text; });
  add_value(app, "--master-port", "PORT",
            "a port there; ranks meet at the one 1000 above it. On one machine, free ports are "
            "found without it",
            [&](const std::string& text) {
              launch.master_port =
                  static_cast<std::uint16_t>(parse_whole("--master-port", text, 1, 65535));
            });
  add_value(app, "--grace", "SECONDS",
            "after a failure, how long the others have between SIGTERM and SIGKILL (5)",
            [&](const std::string& text) {
              launch.grace = std::chrono::seconds(parse_whole("--grace", text, 0, 86400));
            });
  app.add_flag("--first-plain", launch.first_rank_plain,
               "pass rank 0's standard output on as it is, and all else to standard error");
  app.add_option("command", flags->command, "what every rank runs, behind --")
      ->type_name("COMMAND");
  app.description(
      "Starts ranks of one job, each a process of its own with torchrun's variables (RANK,\n"
      "WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT), and passes their "
      "output\n"
      "on, line by line behind their names. When one fails, all end: the code is that of the rank\n"
      "that failed first, or 128 and the signal's number.\n"
      "\n"
      "COMMAND is a program, or a command of this one, such as train. The cores are divided among\n"
      "the ranks unless OMP_NUM_THREADS is set. Ctrl-C is passed on; a second one ends all at "
      "once.");
  app.footer(
      "\nExamples:\n"
      "  reprise launch -n 2 -- train --model mlp --steps 100\n"
      "  reprise launch -n 4 --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 --master-port 29500 "
      "\\\n"
      "                 -- train --model resnet20 --data fashion-mnist --budget 40%");
  return [flags](Context& context) { return run_launch(*flags, context); };
}

}  // namespace reprise::cli
