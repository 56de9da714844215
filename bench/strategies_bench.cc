// Overhead of each strategy on the project's own training graphs, at shares of the activation
// memory: a budget of p % is what stays whatever is recomputed (parameters, optimizer state,
// carried states) and p % of what keep_all takes beyond it. Costs are the backend's analytic ones.
// Counters are the extra cost in % by budget, -1 below the floor of the strategy; for auto also the
// proven bound, below which no schedule is.

#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "fmt/format.h"

#include "graph/autodiff.h"
#include "kernels/backend.h"
#include "models/model.h"
#include "planner/cost_bound.h"
#include "planner/lowering.h"
#include "planner/strategy.h"

namespace {

using namespace reprise;
using planner::Bytes;

constexpr int kShares[] = {80, 60, 50, 40, 30, 20, 10, 5, 2, 1};

struct Case {
  std::string label, model;
  models::ModelOptions options;
};

models::ModelOptions sequence(std::int64_t steps, std::int64_t chunk, std::int64_t hidden,
                              std::int64_t batch = 16) {
  models::ModelOptions options;
  options.batch = batch;
  options.hidden = hidden;
  options.layers = 1;
  options.vocabulary = 64;
  options.seq_len = steps;
  options.chunk = chunk;
  return options;
}

models::ModelOptions images(std::int64_t batch) {
  models::ModelOptions options;
  options.batch = batch;
  return options;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::int64_t steps : {64, 256, 1000}) {
    for (const std::int64_t chunk : {1, 4, 16}) {
      all.push_back({fmt::format("lstm{}x{}", steps, chunk), "lstm", sequence(steps, chunk, 64)});
    }
  }
  all.push_back({"lstm20000x10", "lstm", sequence(20'000, 10, 32)});
  all.push_back({"lstm100000x100", "lstm", sequence(100'000, 100, 64, 4)});
  for (const char* name :
       {"resnet20", "resnet50", "resnet110", "densenet", "unet", "resnet1001", "resnet1202"}) {
    all.push_back({name, name, images(32)});
  }
  return all;
}

planner::GraphProblem problem_of(const Case& c) {
  graph::TrainingOptions training;
  training.optimizer = graph::SgdAttributes{.momentum = 0.9};
  const graph::TrainingGraph graph =
      graph::make_training_graph(models::make_model(c.model, c.options).graph, training);
  const auto backend = kernels::make_backend("cpu", {.threads = 1});
  return planner::make_problem(backend->prepare(graph.graph)->prepared());
}

Bytes staying(const schedule::Problem& problem) {
  Bytes bytes = 0;
  for (const schedule::Tensor& t : problem.tensors) {
    if (t.kind == schedule::TensorKind::kResident || t.kind == schedule::TensorKind::kOutput) {
      bytes += t.bytes;
    }
  }
  return bytes;
}

void plan(benchmark::State& state, const Case& c, const planner::Strategy* strategy) {
  const planner::GraphProblem graph = problem_of(c);
  const auto keep_all =
      std::get<planner::Plan>(planner::find_strategy("keep_all")
                                  .plan({.problem = &graph.problem, .budget = Bytes{1} << 60}));
  const Bytes fixed = staying(graph.problem);
  for (auto _ : state) {
    planner::Request request{.problem = &graph.problem, .cache = planner::make_plan_cache()};
    for (const int share : kShares) {
      request.budget = fixed + (keep_all.arena - fixed) / 100 * share;
      const auto outcome = strategy->plan(request);
      const auto* found = std::get_if<planner::Plan>(&outcome);
      const auto extra = [&](std::int64_t cost) {
        return 100.0 * static_cast<double>(cost - keep_all.cost) /
               static_cast<double>(keep_all.cost);
      };
      state.counters[fmt::format("{:02}%", share)] = found == nullptr ? -1 : extra(found->cost);
      if (found == nullptr || strategy->name() != "auto") continue;
      state.counters[fmt::format("{:02}% bound", share)] =
          extra(planner::cost_bound(graph.problem, request.order, request.budget));
    }
  }
  state.counters["ops"] = static_cast<double>(graph.problem.ops.size());
}

[[maybe_unused]] const bool registered = [] {
  for (const Case& c : cases()) {
    for (const planner::Strategy* strategy : planner::all_strategies()) {
      const std::string_view name = strategy->name();
      if (name == "exact" || name == "keep_all") continue;
      benchmark::RegisterBenchmark(fmt::format("{}/{}", c.label, name).c_str(), plan, c, strategy)
          ->Unit(benchmark::kMillisecond)
          ->Iterations(1);
    }
  }
  return true;
}();

}  // namespace
