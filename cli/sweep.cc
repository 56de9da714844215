// reprise sweep: time against memory, over budgets from the floor to keeping everything.

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/flags.h"
#include "cli/prepare.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/values.h"
#include "cli/waiting.h"
#include "fmt/format.h"

#include "api/chunk.h"
#include "api/plan.h"
#include "base/error.h"

namespace reprise::cli {
namespace {

using base::Bytes;

struct SweepFlags {
  Flags shared;
  std::int64_t budgets = 12;
  std::vector<std::string> planners = {"auto"};
  std::string csv;
};

// One planner at one budget: a plan's figures, or that planner's floor.
struct Point {
  std::string planner;
  Bytes budget = 0;
  std::optional<api::PlanReport> report;
  Bytes floor = 0;
};

struct Sweep {
  std::vector<Point> points;
  std::size_t wanted = 0;

  [[nodiscard]] bool stopped_early() const { return points.size() < wanted; }
  [[nodiscard]] std::string stop_text() const {
    return fmt::format("stopped early, after {} of {} points", points.size(), wanted);
  }
};

// `count` budgets from floor to keep_all, both included, evenly spaced.
std::vector<Bytes> spread(Bytes floor, Bytes keep_all, std::int64_t count) {
  std::set<Bytes> budgets = {floor, keep_all};
  for (std::int64_t i = 1; i + 1 < count; ++i) {
    budgets.insert(floor +
                   static_cast<Bytes>(static_cast<double>(keep_all - floor) *
                                      static_cast<double>(i) / static_cast<double>(count - 1)));
  }
  return {budgets.begin(), budgets.end()};
}

// Of several graphs (--chunk auto) the one whose plan costs least.
Point measure(const std::vector<PreparedTraining>& graphs, api::PlanOptions options,
              const std::string& planner, Bytes budget) {
  options.planner = planner;
  options.budget = {.kind = api::Budget::Kind::kBytes, .bytes = budget};
  options.find_floor = false;  // the sweep knows it
  Point point{.planner = planner, .budget = budget, .report = {}, .floor = 0};
  for (const PreparedTraining& prepared : graphs) {
    auto outcome = api::plan_step(prepared.graph, options, prepared.costs);
    if (auto* infeasible = std::get_if<planner::Infeasible>(&outcome)) {
      point.floor = point.floor == 0 ? infeasible->floor : std::min(point.floor, infeasible->floor);
      continue;
    }
    api::PlanReport report = std::get<api::PlannedTraining>(std::move(outcome)).report;
    report.chunk = prepared.chunk;
    report.micro_batches = prepared.micro_batches;
    if (!point.report || report.cost_ns < point.report->cost_ns) point.report = std::move(report);
  }
  return point;
}

std::string csv_of(const std::vector<Point>& points) {
  std::string text =
      "planner,budget_bytes,feasible,peak_bytes,cost_ns,overhead,recomputed_nodes,fragmentation,"
      "gap,plan_ms,floor_bytes\n";
  for (const Point& point : points) {
    if (!point.report) {
      text += fmt::format("{},{},0,,,,,,,,{}\n", point.planner, point.budget, point.floor);
      continue;
    }
    const api::PlanReport& report = *point.report;
    text += fmt::format("{},{},1,{},{},{:.6f},{},{:.6f},{:.6f},{:.3f},\n", point.planner,
                        point.budget, report.peak_bytes, report.cost_ns, report.overhead,
                        report.recomputed_nodes, report.fragmentation, report.gap, report.plan_ms);
  }
  return text;
}

// `chunks`: with the chunk length of each plan.
std::string table_of(const std::vector<Point>& points, Bytes keep_all, bool chunks) {
  Table table({{"budget"},
               {"of keep all"},
               {chunks ? "planner, chunk" : "planner", Table::Align::kLeft},
               {"peak"},
               {"planned step"},
               {"overhead"},
               {"extra runs"},
               {"holes"}});
  for (const Point& point : points) {
    const double part = static_cast<double>(point.budget) / static_cast<double>(keep_all);
    std::vector<std::string> cells = {base::format_bytes(point.budget),
                                      fmt::format("{:.1f} %", part * 100.0), point.planner};
    if (chunks && point.report) cells.back() += fmt::format(", {}", point.report->chunk);
    if (point.report) {
      const api::PlanReport& report = *point.report;
      for (std::string cell : {base::format_bytes(report.peak_bytes), milliseconds(report.cost_ns),
                               percent(report.overhead), grouped(report.recomputed_nodes),
                               fmt::format("{:.1f} %", report.fragmentation * 100.0)}) {
        cells.push_back(std::move(cell));
      }
    } else {
      const std::string reason = fmt::format("needs {}", base::format_bytes(point.floor));
      for (std::string cell :
           {reason, std::string("-"), std::string("-"), std::string("-"), std::string("-")}) {
        cells.push_back(std::move(cell));
      }
    }
    table.add(std::move(cells));
  }
  return table.text();
}

Json document_of(const api::PlanReport& whole, const Sweep& sweep) {
  Json document;
  document["model"] = whole.model;
  document["floor_bytes"] = whole.floor_bytes;
  document["keep_all_bytes"] = whole.keep_all_bytes;
  document["keep_all_cost_ns"] = whole.keep_all_cost_ns;
  add_costs(document, whole.costs);
  document["stopped_early"] = sweep.stopped_early();
  document["warnings"] = Json::array();
  if (sweep.stopped_early()) document["warnings"].push_back(sweep.stop_text());
  document["points"] = Json::array();
  for (const Point& point : sweep.points) {
    Json row;
    if (point.report) {
      row = plan_document(*point.report);
      row.erase("floor_bytes");  // asked for once, above
      row["feasible"] = true;
    } else {
      row["budget_bytes"] = point.budget;
      row["feasible"] = false;
      row["floor_bytes"] = point.floor;
    }
    row["planner"] = point.planner;
    document["points"].push_back(std::move(row));
  }
  return document;
}

// The least budget that any of the planners can plan for.
Bytes least_floor(const std::vector<PreparedTraining>& graphs, api::PlanOptions options,
                  const std::vector<std::string>& planners, const api::PlanReport& whole) {
  Bytes least = whole.keep_all_bytes;
  for (const std::string& planner : planners) {
    for (std::size_t k = 0; k < graphs.size(); ++k) {
      if (planner == "auto" && k == 0) {
        least = std::min(least, whole.floor_bytes);
        continue;
      }
      options.planner = planner;
      options.budget = {.kind = api::Budget::Kind::kFloor};
      options.find_floor = false;
      const auto outcome = api::plan_step(graphs[k].graph, options, graphs[k].costs);
      const auto* planned = std::get_if<api::PlannedTraining>(&outcome);
      least = std::min(least, planned != nullptr ? planned->report.budget_bytes
                                                 : std::get<planner::Infeasible>(outcome).floor);
    }
  }
  return least;
}

// Heeds a stop after the first point, so that there is something to report.
Sweep measure_all(const std::vector<PreparedTraining>& graphs, const api::PlanOptions& options,
                  const std::vector<Bytes>& budgets, const std::vector<std::string>& planners,
                  const Context& context, Waiting& waiting) {
  Sweep sweep{.points = {}, .wanted = budgets.size() * planners.size()};
  for (const Bytes budget : budgets) {
    for (const std::string& planner : planners) {
      waiting.tell(fmt::format("point {} of {}", sweep.points.size() + 1, sweep.wanted));
      sweep.points.push_back(measure(graphs, options, planner, budget));
      if (sweep.points.size() == 1) context.begin_stoppable();
      if (context.stop != nullptr && context.stop->load()) return sweep;
    }
  }
  return sweep;
}

int run_sweep(const SweepFlags& flags, Context& context) {
  const api::TrainOptions options = complete_flags(flags.shared);
  std::vector<PreparedTraining> graphs;
  if (options.choose_chunk) {
    graphs = api::prepare_each_chunk(options);
  } else {
    graphs.push_back(prepare_training(options));
  }
  const PreparedTraining& prepared = graphs.front();
  for (const std::string& warning : prepared.warnings)
    context.err << "warning: " << warning << "\n";
  Waiting waiting(context, "planning " + options.model);
  // Without a limit keep_all is what auto takes; its report says the floor of auto, too.
  api::PlanOptions unlimited = options.session.plan;
  unlimited.planner = "auto";
  unlimited.budget = {};
  const auto outcome = api::plan_step(prepared.graph, unlimited, prepared.costs);
  REPRISE_CHECK(std::holds_alternative<api::PlannedTraining>(outcome),
                "an unlimited budget was infeasible");
  const api::PlanReport whole = std::get<api::PlannedTraining>(outcome).report;

  const Bytes floor = least_floor(graphs, options.session.plan, flags.planners, whole);
  const std::vector<Bytes> budgets = spread(floor, whole.keep_all_bytes, flags.budgets);
  const Sweep sweep =
      measure_all(graphs, options.session.plan, budgets, flags.planners, context, waiting);
  waiting.stop();
  const std::vector<Point>& points = sweep.points;
  if (sweep.stopped_early()) context.err << "warning: " << sweep.stop_text() << "\n";
  if (!flags.csv.empty()) write_file(flags.csv, csv_of(points));
  if (context.json) {
    context.print(document_of(whole, sweep));
    return kOk;
  }
  context.out << fmt::format("{} on {}, from the floor to keeping everything; costs: {}\n",
                             whole.model, prepared.graph.backend,
                             api::cost_origin_text(whole.costs))
              << table_of(points, whole.keep_all_bytes, options.choose_chunk);
  if (!flags.csv.empty()) context.out << "\nwrote " << flags.csv << "\n";
  return kOk;
}

}  // namespace

Action add_sweep(CLI::App& app) {
  const auto flags = std::make_shared<SweepFlags>();
  app.option_defaults()->group("Sweep");
  add_value(app, "--budgets", "N", "how many, from the floor to keeping everything; default 12",
            [flags](const std::string& text) {
              flags->budgets = parse_whole("--budgets", text, 2, 10'000);
            });
  add_value(app, "--planners", "A,B,...", "default auto", [flags](const std::string& text) {
    flags->planners = split_list("--planners", text);
    for (const std::string& name : flags->planners) (void)planner::find_strategy(name);
  });
  add_value(app, "--csv", "FILE", "write the points there",
            [flags](const std::string& text) { flags->csv = text; });
  add_model_flags(app, flags->shared);
  add_device_flags(app, flags->shared);
  add_costs_flag(app, flags->shared);
  add_optimizer_flags(app, flags->shared);
  app.description("Plans one model at many budgets and prints what each byte saved costs in time.");
  app.footer(
      "\nExamples:\n"
      "  reprise sweep --model resnet110 --budgets 20\n"
      "  reprise sweep --model lstm --seq-len 1000 --chunk auto --planners rnn,auto \\\n"
      "                --csv lstm.csv");
  return [flags](Context& context) { return run_sweep(*flags, context); };
}

}  // namespace reprise::cli
