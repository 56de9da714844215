#pragma once

// A small network whose gradients are summed over ranks, and how far its sums are from their waits.

#include <algorithm>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "schedule/schedule.h"
#include "tests/planner/prepared_model.h"

namespace reprise::planner::testing {

// Three layers of 64 x 64 weights on `rows` rows.
inline graph::PreparedGraph three_layers(std::int64_t rows, bool updates_last = false) {
  graph::Builder b("deep");
  auto x = b.input("x", {rows, 64});
  for (int i = 0; i < 3; ++i)
    x = b.relu(b.matmul(x, b.parameter(fmt::format("w{}", i), {64, 64}), {}));
  b.set_loss(
      b.mean_squared_error(x, b.input("target", {rows, 64}), graph::Reduction::kMean, "loss"));
  graph::TrainingOptions options;
  options.updates_last = updates_last;
  options.ranks =
      graph::TrainingOptions::Ranks{.bytes_under_way = 0};  // autodiff awaits every sum at once
  return prepare_without_backend(graph::make_training_graph(b.finish(), options).graph);
}

// Of the instructions whose names begin with one of `prefixes`, in order.
inline std::vector<std::string> names(const graph::PreparedGraph& prepared,
                                      const schedule::Schedule& schedule,
                                      const std::vector<std::string>& prefixes) {
  std::vector<std::string> found;
  for (const auto& each : schedule.instructions) {
    const std::string& name = prepared.graph.nodes[each.node].name;
    const bool wanted = std::any_of(prefixes.begin(), prefixes.end(),
                                    [&](const auto& prefix) { return name.starts_with(prefix); });
    if (wanted) found.push_back(name);
  }
  return found;
}

// The more distance, the more instructions between begin and wait.
inline std::int64_t distance(const graph::PreparedGraph& prepared,
                             const schedule::Schedule& schedule) {
  std::int64_t sum = 0, at = 0;
  for (const auto& each : schedule.instructions) {
    const graph::OpKind op = prepared.graph.nodes[each.node].op;
    if (op == graph::OpKind::kAllReduce) sum -= at;
    if (op == graph::OpKind::kAwait) sum += at;
    ++at;
  }
  return sum;
}

}  // namespace reprise::planner::testing
