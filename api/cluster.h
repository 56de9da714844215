#pragma once

// The step of a model on many ranks, without any of them: `reprise simulate`.

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "api/plan.h"
#include "api/trainer.h"
#include "schedule/cluster.h"

namespace reprise::api {

struct ClusterOptions {
  std::vector<std::int64_t> worlds;  // numbers of ranks
  schedule::Link link{};
};

struct ClusterReport {
  PlanReport plan;  // of one rank
  std::vector<std::string> warnings;
  std::vector<Bytes> bucket_bytes;  // of the sums of a step, in their order
  struct World {
    std::int64_t ranks = 0;
    schedule::StepEstimate by_exchange[std::size(schedule::kExchanges)];
    schedule::Exchange best{};  // of the shortest step
    [[nodiscard]] const schedule::StepEstimate& of(schedule::Exchange exchange) const {
      return by_exchange[static_cast<std::size_t>(exchange)];
    }
  };
  std::vector<World> worlds;
};

// Plans the step that each of several ranks runs (options.model_options.batch is that of one rank,
// options.session.bucket_bytes cuts the sums) and estimates it for every number of ranks. Error
// (kInput) for data that is needed and cannot be read, and for several numbers of ranks with a
// batch norm over all of them.
[[nodiscard]] std::variant<ClusterReport, planner::Infeasible> simulate_cluster(
    const TrainOptions& options, const ClusterOptions& cluster);

}  // namespace reprise::api
