// reprise profile: what each node of a step costs on this device, kept for later plans.

#include "api/profile.h"

#include <memory>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/prepare.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/values.h"
#include "fmt/format.h"

#include "base/error.h"
#include "runtime/cost_cache.h"

namespace reprise::cli {
namespace {

struct ProfileFlags {
  Flags shared;
  api::ProfileOptions profile;
  std::int64_t rows = 20;
  std::string out;
};

// Above this share of runs that lost their core, the figures deserve a word of warning.
constexpr double kBusyPart = 0.1;

std::string shortened(const std::string& key) {
  constexpr std::size_t kWidth = 88;
  return key.size() <= kWidth ? key : key.substr(0, kWidth - 3) + "...";
}

// Arithmetic where that is what a node does, else bytes: "412 GFLOP/s", "61.0 GB/s".
std::string speed_text(const api::ProfileReport::Node& node) {
  if (node.ns == 0) return "-";
  const auto ns = static_cast<double>(node.ns);
  constexpr double kIntense = 8.0;  // operations for each byte
  if (node.flops > kIntense * node.bytes) return fmt::format("{:.0f} GFLOP/s", node.flops / ns);
  return fmt::format("{:.1f} GB/s", node.bytes / ns);
}

std::string table_of(const api::ProfileReport& report, std::int64_t rows) {
  Table table({{"a step"},
               {"share"},
               {"nodes"},
               {"each"},
               {"bytes"},
               {"speed"},
               {"node", Table::Align::kLeft}});
  for (const auto& node : report.nodes) {
    if (rows-- == 0) break;
    const std::int64_t all = node.ns * node.nodes;
    const double share = report.total_ns == 0
                             ? 0.0
                             : static_cast<double>(all) / static_cast<double>(report.total_ns);
    table.add({milliseconds(all), fmt::format("{:.1f} %", share * 100.0), grouped(node.nodes),
               fmt::format("{:.1f} us", static_cast<double>(node.ns) * 1e-3),
               base::format_bytes(static_cast<base::Bytes>(node.bytes)), speed_text(node),
               shortened(node.key)});
  }
  return table.text();
}

Json document_of(const api::ProfileReport& report, const std::string& model,
                 const std::string& cache, const std::string& out) {
  Json document;
  document["model"] = model;
  document["device"] = report.table.device;
  document["distinct_nodes"] = report.nodes.size();
  document["total_ns"] = report.total_ns;
  document["ms_per_step"] = report.ms_per_step;
  document["steps"] = report.steps;
  document["disturbed"] = report.disturbed_part;
  document["seconds"] = report.seconds;
  document["cache_file"] = cache.empty() ? Json(nullptr) : Json(cache);
  document["file"] = out.empty() ? Json(nullptr) : Json(out);
  document["nodes"] = Json::array();
  for (const auto& node : report.nodes) {
    document["nodes"].push_back({{"node", node.key},
                                 {"op", node.op},
                                 {"nodes", node.nodes},
                                 {"ns", node.ns},
                                 {"runs", node.runs},
                                 {"flops", node.flops},
                                 {"bytes", node.bytes}});
  }
  return document;
}

// Writes the table where it belongs; returns the file in the cache, "" when there is none.
std::string keep(const api::ProfileReport& report, const ProfileFlags& flags, Context& context) {
  if (!flags.out.empty()) runtime::save_costs(flags.out, report.table);
  const auto folder = runtime::cost_cache_folder();
  if (!folder) {
    context.err << "note: no cache: HOME and XDG_CACHE_HOME name no folder\n";
    return {};
  }
  const auto file = runtime::cost_cache_file(*folder, report.table.device);
  try {
    const std::string replaced = runtime::add_to_cost_cache(file, report.table);
    if (!replaced.empty())
      context.err << "note: replaced a cache that was no use: " << replaced << "\n";
    return file.string();
  } catch (const base::Error& error) {
    if (flags.out.empty()) throw;  // else the measurement is kept, where the user asked for it
    context.err << "note: " << error.what() << "\n";
    return {};
  }
}

void print_profile(Context& context, const api::ProfileReport& report, const std::string& model,
                   std::int64_t rows) {
  Facts facts;
  facts.add("device", report.table.device);
  facts.add("sum", fmt::format("{} a step, over {} distinct nodes", milliseconds(report.total_ns),
                               grouped(static_cast<std::int64_t>(report.nodes.size()))));
  facts.add("step", fmt::format("{:.2f} ms, measured as a whole ({} steps, planner {})",
                                report.ms_per_step, report.steps, report.planner));
  facts.add("took", fmt::format("{:.1f} s", report.seconds));
  context.out << model << ", where the time of a step goes:\n" << table_of(report, rows);
  const auto hidden = static_cast<std::int64_t>(report.nodes.size()) - rows;
  if (hidden > 0) context.out << fmt::format("  and {} more; --rows shows them\n", hidden);
  context.out << "\n" << facts.text();
}

int run_profile(const ProfileFlags& flags, Context& context) {
  api::TrainOptions options = complete_flags(flags.shared);
  options.optimizer = with_period(options.optimizer);
  if (!runtime::cost_cache_folder() && flags.out.empty()) {
    throw base::input_error(
        "nowhere to keep the costs: HOME and XDG_CACHE_HOME name no folder; give --out FILE");
  }
  const auto progress = [&](std::int64_t done, std::int64_t total) {
    if (!context.err_is_terminal) return;
    context.err << fmt::format("\rprofiling: step {} of at most {} ", done, total) << std::flush;
  };
  context.begin_stoppable();
  const api::ProfileReport report = api::profile(options, flags.profile, progress, context.stop);
  if (context.err_is_terminal) context.err << "\r\x1b[K" << std::flush;
  const std::string cache = keep(report, flags, context);
  if (report.disturbed_part > kBusyPart) {
    context.err << fmt::format(
        "warning: other programs used the machine: {:.0f} % of the runs were interrupted and left "
        "out; profile again when it is idle\n",
        report.disturbed_part * 100.0);
  }
  if (context.json) {
    context.print(document_of(report, options.model, cache, flags.out));
    return kOk;
  }
  print_profile(context, report, options.model, flags.rows);
  if (!cache.empty()) context.out << "\nkept in " << cache << ", where later plans find it\n";
  if (!flags.out.empty()) context.out << "wrote " << flags.out << "\n";
  return kOk;
}

}  // namespace

Action add_profile(CLI::App& app) {
  const auto flags = std::make_shared<ProfileFlags>();
  app.option_defaults()->group("Profile");
  add_value(app, "--repeats", "N", "steps that are timed at most; default 10",
            [flags](const std::string& text) {
              flags->profile.repeats = parse_whole("--repeats", text, 1, 10'000);
            });
  add_value(app, "--seconds", "S", "no further step after this time; default 10",
            [flags](const std::string& text) {
              flags->profile.seconds = parse_real("--seconds", text, 0, 86'400);
            });
  add_value(app, "--rows", "N", "how many of the most expensive nodes to print; default 20",
            [flags](const std::string& text) { flags->rows = parse_whole("--rows", text, 1); });
  add_value(app, "--out", "FILE", "write the costs there, too, for --costs FILE",
            [flags](const std::string& text) { flags->out = text; });
  add_model_flags(app, flags->shared);
  add_device_flags(app, flags->shared);
  add_optimizer_flags(app, flags->shared);
  app.description(
      "Runs a few training steps, times every node, and keeps the costs for this device. Then\n"
      "plan, sweep, map and train weigh recomputation with measured times. Nothing is trained.");
  app.footer(
      "\nExamples:\n"
      "  reprise profile --model resnet20 --data fashion-mnist --batch 64\n"
      "  reprise profile --model resnet50 --batch 4 --out resnet50.costs.json\n"
      "  reprise plan --model resnet50 --batch 4 --budget 40% --costs resnet50.costs.json");
  return [flags](Context& context) { return run_profile(*flags, context); };
}

}  // namespace reprise::cli
