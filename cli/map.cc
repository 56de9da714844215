// reprise map: a memory map as SVG, of a plan file or of a model planned on the spot.

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/flags.h"
#include "cli/prepare.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/values.h"
#include "cli/waiting.h"
#include "fmt/format.h"

#include "api/plan.h"
#include "base/error.h"
#include "schedule/memory_map.h"

namespace reprise::cli {
namespace {

struct MapFlags {
  Flags shared;
  std::string file, out;
  std::int64_t width = 1200, height = 720;
};

struct Picture {
  schedule::PlannedStep step;
  std::optional<base::Bytes> floor{};
};

std::string draw(const Picture& picture, const MapFlags& flags) {
  schedule::MemoryMapOptions options;
  options.title = fmt::format("{}, {}", picture.step.prepared.graph.name, picture.step.planner);
  if (picture.step.budget_bytes > 0) options.budget_bytes = picture.step.budget_bytes;
  options.floor_bytes = picture.floor;
  options.width = static_cast<int>(flags.width);
  options.height = static_cast<int>(flags.height);
  return schedule::draw_memory_map(picture.step.prepared, picture.step.schedule, options);
}

int write_map(const Picture& picture, const MapFlags& flags, Context& context) {
  const std::string svg = draw(picture, flags);
  write_file(flags.out, svg);
  if (context.json) {
    context.print({{"file", flags.out},
                   {"file_bytes", svg.size()},
                   {"arena_bytes", picture.step.schedule.arena_bytes}});
  } else {
    context.out << fmt::format("wrote {}: {} instructions, an arena of {}\n", flags.out,
                               picture.step.schedule.instructions.size(),
                               exact_bytes(picture.step.schedule.arena_bytes));
  }
  return kOk;
}

// Either a file or a model; what plans a model says nothing about a file.
void require_one_source(const CLI::App& app, const MapFlags& flags) {
  if (flags.file.empty() && flags.shared.train.model.empty()) {
    throw base::input_error("reprise map: name a plan file or a --model");
  }
  if (flags.file.empty()) return;
  std::error_code unknown;  // a file that is not there yet is another one
  if (std::filesystem::equivalent(flags.file, flags.out, unknown)) {
    throw base::input_error("--out {}: that is the plan file itself; name another file", flags.out);
  }
  const std::set<std::string> of_pictures = {"--out", "--width", "--height", "--json", "file"};
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || of_pictures.contains(option->get_name())) continue;
    throw base::input_error("{}: plans a model, but '{}' is planned already; leave one out",
                            option->get_name(), flags.file);
  }
}

int run_map(const MapFlags& flags, Context& context) {
  if (!flags.file.empty()) return write_map({read_plan(flags.file), std::nullopt}, flags, context);
  api::TrainOptions options = complete_flags(flags.shared);
  if (const auto refused = choose_chunk(flags.shared, options, context)) return *refused;
  const PreparedTraining prepared = prepare_training(options);
  auto outcome = while_waiting(context, "planning " + options.model, [&] {
    return api::plan_step(prepared.graph, options.session.plan, prepared.costs);
  });
  if (const auto* infeasible = std::get_if<planner::Infeasible>(&outcome)) {
    return report_infeasible(context, *infeasible, options.model, options.session.plan.planner,
                             flags.shared.budget_text);
  }
  auto& planned = std::get<api::PlannedTraining>(outcome);
  return write_map({std::move(planned.step), planned.report.floor_bytes}, flags, context);
}

}  // namespace

Action add_map(CLI::App& app) {
  const auto flags = std::make_shared<MapFlags>();
  app.add_option("file", flags->file, "a plan file; or name a model")->type_name("FILE");
  app.option_defaults()->group("Picture");
  add_value(app, "--out", "FILE.svg", "where to draw", [flags](const std::string& text) {
    flags->out = text;
  })->required();
  add_value(app, "--width", "PIXELS", "default 1200", [flags](const std::string& text) {
    flags->width = parse_whole("--width", text, 300, 20'000);
  });
  add_value(app, "--height", "PIXELS", "default 720", [flags](const std::string& text) {
    flags->height = parse_whole("--height", text, 200, 20'000);
  });
  add_model_flags(app, flags->shared);
  add_planner_flags(app, flags->shared);
  add_device_flags(app, flags->shared);
  add_costs_flag(app, flags->shared);
  add_optimizer_flags(app, flags->shared);
  app.get_option("--model")->required(false);
  app.description(
      "Draws where every byte of a training step lies: address against instruction, one rectangle\n"
      "for each tensor, coloured by what it is.");
  app.footer(
      "\nExamples:\n"
      "  reprise map floor.plan --out floor.svg\n"
      "  reprise map --model resnet20 --data fashion-mnist --budget 40% --out map.svg");
  return [flags, &app](Context& context) {
    require_one_source(app, *flags);
    return run_map(*flags, context);
  };
}

}  // namespace reprise::cli
