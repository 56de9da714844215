// reprise solve: the planner alone, on a problem that someone else wrote.

#include <chrono>
#include <memory>

#include "cli/files.h"
#include "cli/flags.h"
#include "cli/solve_forms.h"
#include "cli/table.h"
#include "cli/values.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/error.h"

namespace reprise::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostSeconds = 1e6;

// None without a limit: a search that is never to be stopped ends when its moves are spent.
std::function<bool()> make_stop(double seconds) {
  if (seconds <= 0) return {};
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(seconds));
  return [end] { return Clock::now() >= end; };
}

template <class Parse>
auto parse_file(const std::string& file, Parse&& parse) {
  try {
    return parse();
  } catch (const base::Error& error) {
    throw base::Error(error.kind(), fmt::format("{}: {}", file, error.what()));
  }
}

int run_solve(const SolveFlags& given, Context& context) {
  SolveFlags flags = given;
  flags.options.stop = make_stop(flags.seconds);
  const std::string text = read_file(flags.file);
  const planner::ProblemFile problem =
      parse_file(flags.file, [&] { return planner::parse_problem(text); });
  if (!problem.ignored.empty()) {
    context.err << fmt::format("note: fields without a meaning here: {}\n",
                               fmt::join(problem.ignored, ", "));
  }
  const SolveInput input{flags, problem};
  return parse_file(flags.file, [&] {
    return std::visit([&](const auto& form) { return solve_form(input, form, context); },
                      problem.content);
  });
}

std::string planner_help() {
  std::string help = "which strategy decides:";
  for (const planner::Strategy* strategy : planner::all_strategies()) {
    help += fmt::format("\n{:<9} {}", strategy->name(), strategy->summary());
  }
  return help + "\n(default auto)";
}

void add_problem_flags(CLI::App& app, const std::shared_ptr<SolveFlags>& flags) {
  app.option_defaults()->group("Problem");
  add_value(app, "--budget", "BYTES",
            "300MiB, 2GB, bytes; 40% of what keeping everything takes; floor: the least "
            "this planner can plan for; default unlimited",
            [flags](const std::string& text) {
              flags->options.budget = api::parse_budget(text);
              flags->budget_text = text;
              flags->budget_given = true;
            });
  add_value(app, "--order", "fixed|free",
            "fixed: every op runs, first runs in the order of the file; free (default): "
            "any order that the data allows",
            [flags](const std::string& text) {
              flags->options.order = parse_choice("--order", text, {"fixed", "free"}) == "fixed"
                                         ? planner::OrderFreedom::kFixed
                                         : planner::OrderFreedom::kFree;
              flags->order_given = true;
            });
  app.add_flag("--arena", flags->options.arena,
               "give buffers their offsets; the packed arena is then what must fit the "
               "budget, not the largest sum of live bytes");
}

void add_search_flags(CLI::App& app, const std::shared_ptr<SolveFlags>& flags) {
  app.option_defaults()->group("Planner");
  add_value(app, "--planner", "NAME", planner_help(), [flags](const std::string& text) {
    flags->options.planner = text;
    flags->planner_given = true;
  });
  add_value(app, "--seconds", "S",
            "end the search then, with the best plan so far; default: when its moves are "
            "spent, which gives the same plan on every machine",
            [flags](const std::string& text) {
              flags->seconds = parse_real("--seconds", text, 0, kMostSeconds, true);
            });
  add_value(app, "--moves", "N", "effort of local search: moves per op and level of memory",
            [flags](const std::string& text) {
              flags->options.search_moves = parse_whole("--moves", text, 1, 1'000'000'000);
            });
  add_value(app, "--seed", "N", "of the search; default 1", [flags](const std::string& text) {
    flags->options.seed = static_cast<std::uint64_t>(parse_whole("--seed", text, 0));
  });
  add_value(app, "--threads", "N", "searches side by side; default 1",
            [flags](const std::string& text) {
              flags->options.threads = static_cast<int>(parse_whole("--threads", text, 1, 1024));
            });
}

}  // namespace

Action add_solve(CLI::App& app) {
  const auto flags = std::make_shared<SolveFlags>();
  app.add_option("file", flags->file, "a problem as JSON (docs/problem_format.md)")
      ->required()
      ->type_name("FILE");
  add_problem_flags(app, flags);
  add_search_flags(app, flags);
  app.description(
      "Plans a problem that is no model of ours: an op graph, a chain of stages, or buffers to\n"
      "pack. Nothing runs. With --json the plan is listed instruction by instruction.");
  app.footer(
      "\nExamples:\n"
      "  reprise solve graph.json --budget 40%\n"
      "  reprise solve graph.json --budget 300MiB --order fixed --planner dag --seconds 10 --json\n"
      "  reprise solve graph.json --budget floor --arena --json\n"
      "  reprise solve buffers.json");
  return [flags](Context& context) { return run_solve(*flags, context); };
}

}  // namespace reprise::cli
