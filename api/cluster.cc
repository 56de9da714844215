#include "api/cluster.h"

#include <utility>

#include "api/prepare.h"
#include "base/error.h"
#include "schedule/buckets.h"

namespace reprise::api {
namespace {

using schedule::Exchange;

ClusterReport::World estimate(const schedule::PlannedStep& step,
                              const std::vector<schedule::Bucket>& buckets, std::int64_t ranks,
                              const schedule::Link& link) {
  ClusterReport::World world;
  world.ranks = ranks;
  for (const Exchange exchange : schedule::kExchanges) {
    auto& mine = world.by_exchange[static_cast<std::size_t>(exchange)];
    mine = schedule::estimate_step(step.prepared, step.schedule, buckets, [&](Bytes bytes) {
      return schedule::exchange_ns(exchange, ranks, bytes, link);
    });
    if (mine.step_ns < world.of(world.best).step_ns) world.best = exchange;
  }
  return world;
}

}  // namespace

std::variant<ClusterReport, planner::Infeasible> simulate_cluster(const TrainOptions& options,
                                                                  const ClusterOptions& cluster) {
  const Bytes bucket_bytes = options.session.bucket_bytes;
  graph::TrainingOptions::Ranks ranks{.bucket_bytes = bucket_bytes};
  if (options.session.synchronise_batch_norm) {
    if (cluster.worlds.size() != 1) {
      throw base::input_error(
          "--sync-batch-norm: its sums have a row for each rank, so {} worlds are as many "
          "different "
          "steps; give --world one number",
          cluster.worlds.size());
    }
    ranks.batch_norm_over = cluster.worlds.front();
  }
  const PreparedTraining prepared = prepare_training(options, ranks);
  auto outcome = plan_step(prepared.graph, options.session.plan, prepared.costs);
  if (auto* infeasible = std::get_if<planner::Infeasible>(&outcome)) return std::move(*infeasible);
  auto& planned = std::get<PlannedTraining>(outcome);
  planned.report.chunk = prepared.chunk;
  ClusterReport report;
  report.plan = planned.report;
  report.warnings = prepared.warnings;
  const auto buckets =
      schedule::cut_buckets(planned.step.prepared, planned.step.schedule, bucket_bytes);
  for (const schedule::Bucket& bucket : buckets) report.bucket_bytes.push_back(bucket.bytes);
  for (const std::int64_t world : cluster.worlds)
    report.worlds.push_back(estimate(planned.step, buckets, world, cluster.link));
  return report;
}

}  // namespace reprise::api
