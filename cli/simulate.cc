// reprise simulate: the step of a plan on many ranks, from its schedule and costs.

#include <algorithm>
#include <memory>
#include <numeric>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/prepare.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/values.h"
#include "cli/waiting.h"
#include "fmt/format.h"

#include "api/cluster.h"
#include "base/error.h"

namespace reprise::cli {
namespace {

using schedule::Exchange;
using schedule::kExchanges;
using schedule::StepEstimate;

constexpr std::int64_t kMostRanks = 1 << 20;

struct SimulateFlags {
  Flags shared;
  std::string world_text = "1..1024", link_text = "10GB/s", latency_text = "5us";
  api::ClusterOptions cluster{};
};

// "64", "2,3,8", and "8..4096": both and the powers of two between them.
std::vector<std::int64_t> parse_worlds(std::string_view text) {
  std::vector<std::int64_t> worlds;
  for (const std::string& item : split_list("--world", text)) {
    const std::size_t dots = item.find("..");
    const std::int64_t first = parse_whole("--world", item.substr(0, dots), 1, kMostRanks);
    worlds.push_back(first);
    if (dots == std::string::npos) continue;
    const std::int64_t last = parse_whole("--world", item.substr(dots + 2), 1, kMostRanks);
    if (last < first)
      throw base::input_error("--world '{}': {} is more than {}", item, first, last);
    for (std::int64_t ranks = 2; ranks < last; ranks *= 2)
      if (ranks > first) worlds.push_back(ranks);
    if (last > first) worlds.push_back(last);
  }
  return worlds;
}

void add_cluster_flags(CLI::App& app, SimulateFlags& flags) {
  app.option_defaults()->group("Cluster");
  add_value(app, "--world", "RANKS",
            "numbers of ranks: 8..4096 (with the powers of two between), or 2,3,8; default 1..1024",
            [&flags](const std::string& text) {
              flags.cluster.worlds = parse_worlds(text);
              flags.world_text = text;
            });
  add_value(app, "--link", "RATE", "between two ranks, each way; default 10GB/s",
            [&flags](const std::string& text) {
              flags.cluster.link.bytes_per_second = parse_rate("--link", text);
              flags.link_text = text;
            });
  add_value(app, "--latency", "TIME", "until a message begins to arrive; default 5us",
            [&flags](const std::string& text) {
              flags.cluster.link.latency_ns = parse_duration_ns("--latency", text);
              flags.latency_text = text;
            });
  add_value(app, "--message", "TIME", "of the sender's work for each message; default 1us",
            [&flags](const std::string& text) {
              flags.cluster.link.message_ns = parse_duration_ns("--message", text);
            });
}

Json estimate_document(const StepEstimate& estimate) {
  return {{"step_ns", estimate.step_ns},
          {"sums_ns", estimate.sums_ns},
          {"wait_ns", estimate.wait_ns},
          {"efficiency", estimate.efficiency()}};
}

Json document_of(const api::ClusterReport& report, const SimulateFlags& flags) {
  const schedule::Link& link = flags.cluster.link;
  Json document;
  document["plan"] = plan_document(report.plan);
  document["link"] = {{"bytes_per_second", link.bytes_per_second},
                      {"latency_ns", link.latency_ns},
                      {"message_ns", link.message_ns}};
  document["bucket_bytes"] = report.bucket_bytes;
  document["worlds"] = Json::array();
  for (const auto& world : report.worlds) {
    Json item{{"ranks", world.ranks}, {"best", schedule::exchange_name(world.best)}};
    for (const Exchange exchange : kExchanges)
      item[std::string(schedule::exchange_name(exchange))] = estimate_document(world.of(exchange));
    document["worlds"].push_back(std::move(item));
  }
  return document;
}

// How much of the sums is computed under; all of it where nothing is summed.
std::string hidden_part(const StepEstimate& estimate) {
  if (estimate.sums_ns == 0) return "-";
  const double waited = static_cast<double>(estimate.step_ns - estimate.compute_ns);
  return fmt::format("{:.0f} %", 100 * (1 - waited / static_cast<double>(estimate.sums_ns)));
}

void print_report(Context& context, const api::ClusterReport& report, const SimulateFlags& flags) {
  const base::Bytes bytes =
      std::accumulate(report.bucket_bytes.begin(), report.bucket_bytes.end(), base::Bytes{0});
  const std::int64_t step_ns = report.plan.cost_ns;
  context.out << fmt::format(
      "{} with {} of {} for each rank: a step computes {}, {} of it for recomputation, and sums {} "
      "in {} operations\nLink of {}, latency {}; costs {}\n\n",
      report.plan.model, report.plan.planner, base::format_bytes(report.plan.peak_bytes),
      milliseconds(step_ns), milliseconds(step_ns - report.plan.keep_all_cost_ns),
      base::format_bytes(bytes), report.bucket_bytes.size(), flags.link_text, flags.latency_text,
      api::cost_origin_text(report.plan.costs));
  Table table({{"ranks"},
               {"best", Table::Align::kLeft},
               {"step"},
               {"efficiency"},
               {"sums"},
               {"hidden"},
               {"ring"},
               {"tree"},
               {"two hops"}});
  for (const auto& world : report.worlds) {
    const StepEstimate& best = world.of(world.best);
    const auto step_of = [&](Exchange exchange) {
      return milliseconds(world.of(exchange).step_ns);
    };
    table.add({grouped(world.ranks),
               world.ranks == 1 ? "-" : std::string(schedule::exchange_name(world.best)),
               milliseconds(best.step_ns), fmt::format("{:.1f} %", 100 * best.efficiency()),
               milliseconds(best.sums_ns), hidden_part(best), step_of(Exchange::kRing),
               step_of(Exchange::kTree), step_of(Exchange::kTwoHop)});
  }
  context.out << table.text();
}

int run_simulate(const SimulateFlags& flags, Context& context) {
  api::TrainOptions options = complete_flags(flags.shared);
  if (const auto refused = choose_chunk(flags.shared, options, context)) return *refused;
  const auto outcome = while_waiting(context, "planning " + options.model,
                                     [&] { return api::simulate_cluster(options, flags.cluster); });
  if (const auto* infeasible = std::get_if<planner::Infeasible>(&outcome)) {
    return report_infeasible(context, *infeasible, options.model, options.session.plan.planner,
                             flags.shared.budget_text);
  }
  const auto& report = std::get<api::ClusterReport>(outcome);
  for (const std::string& warning : report.warnings) context.err << "warning: " << warning << "\n";
  if (context.json) {
    context.print(document_of(report, flags));
  } else {
    print_report(context, report, flags);
  }
  return kOk;
}

}  // namespace

Action add_simulate(CLI::App& app) {
  const auto flags = std::make_shared<SimulateFlags>();
  flags->cluster = {.worlds = parse_worlds(flags->world_text),
                    .link = {.bytes_per_second = parse_rate("--link", flags->link_text),
                             .latency_ns = parse_duration_ns("--latency", flags->latency_text),
                             .message_ns = 1000}};
  add_cluster_flags(app, *flags);
  add_model_flags(app, flags->shared);
  add_planner_flags(app, flags->shared);
  add_device_flags(app, flags->shared);
  add_costs_flag(app, flags->shared);
  add_optimizer_flags(app, flags->shared);
  add_bucket_flag(app, flags->shared);
  app.description(
      "Estimates the step of a plan on many ranks: what each computes, by the plan's costs, "
      "beside\n"
      "the sums of gradients on a link of the given speed, by ring, by tree, and by the two hops "
      "of\n"
      "training on CPUs. --batch is that of one rank. Efficiency is against sums that take no "
      "time.\n"
      "Nothing is trained.");
  app.footer(
      "\nExamples:\n"
      "  reprise simulate --model resnet50 --batch 32 --world 8..4096 --link 50GB/s --latency 5us\n"
      "  reprise simulate --model resnet20 --data fashion-mnist --budget 40% --world 2,3,4 \\\n"
      "                   --link 100MB/s --latency 100us --json");
  return [flags](Context& context) { return run_simulate(*flags, context); };
}

}  // namespace reprise::cli
