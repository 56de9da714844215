// reprise verify: is a plan file a correct execution of its graph inside its arena?

#include "schedule/verify.h"

#include <memory>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/flags.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/values.h"
#include "fmt/format.h"

#include "base/error.h"
#include "schedule/text.h"

namespace reprise::cli {
namespace {

struct VerifyFlags {
  std::string file;
  std::int64_t limit = 20;
};

Json document_of(const schedule::PlannedStep& step,
                 const std::vector<schedule::Violation>& violations) {
  Json document;
  document["ok"] = violations.empty();
  document["instructions"] = step.schedule.instructions.size();
  document["slots"] = step.schedule.slots.size();
  document["arena_bytes"] = step.schedule.arena_bytes;
  document["budget_bytes"] = step.budget_bytes;
  document["violations"] = Json::array();
  for (const schedule::Violation& violation : violations) {
    document["violations"].push_back({{"rule", schedule::rule_name(violation.rule)},
                                      {"instruction", violation.instruction},
                                      {"message", violation.message}});
  }
  return document;
}

int run_verify(const VerifyFlags& flags, Context& context) {
  const schedule::PlannedStep step =
      schedule::parse_planned_step(read_file(flags.file), flags.file);
  const auto violations = schedule::verify(step, static_cast<std::size_t>(flags.limit));
  if (context.json) {
    context.print(document_of(step, violations));
  } else if (violations.empty()) {
    context.out << fmt::format(
        "ok: {} instructions, {} slots, an arena of {}\n",
        grouped(static_cast<std::int64_t>(step.schedule.instructions.size())),
        grouped(static_cast<std::int64_t>(step.schedule.slots.size())),
        exact_bytes(step.schedule.arena_bytes));
  } else {
    for (const schedule::Violation& violation : violations) {
      const std::string place = violation.instruction < 0
                                    ? std::string()
                                    : fmt::format("instruction {}: ", violation.instruction);
      context.out << fmt::format("{}: {}{}\n", schedule::rule_name(violation.rule), place,
                                 violation.message);
    }
    const bool more = violations.size() == static_cast<std::size_t>(flags.limit);
    context.err << fmt::format("error: {}: {}{} violation{}\n", flags.file, more ? "at least " : "",
                               violations.size(), violations.size() == 1 ? "" : "s");
  }
  return violations.empty() ? kOk : kFailure;
}

}  // namespace

Action add_verify(CLI::App& app) {
  const auto flags = std::make_shared<VerifyFlags>();
  app.add_option("file", flags->file, "a plan file, as 'reprise plan --out' writes it")
      ->required()
      ->type_name("FILE");
  app.option_defaults()->group("Output");
  add_value(app, "--limit", "N", "violations to print; default 20",
            [flags](const std::string& text) {
              flags->limit = parse_whole("--limit", text, 1, 1'000'000);
            });
  app.description(
      "Checks a plan file against every rule of a correct schedule: what is read was written and "
      "is\n"
      "intact, nothing overlaps, nothing needed is missing, the peak is the arena and within the\n"
      "budget. The checker shares no code with the planner. Exit code 0 when correct, 1 when a "
      "rule\n"
      "is broken, 2 when the file cannot be read.");
  app.footer("\nExample:\n  reprise verify floor.plan");
  return [flags](Context& context) { return run_verify(*flags, context); };
}

}  // namespace reprise::cli
