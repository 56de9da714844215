// How tightly plans pack: our models at half and at 30 % of what the activations take, planned by
// `auto` as `reprise plan` does it, then packed with rising effort. Percentages are of the bytes
// above those that stay for the whole step. Counters: live sum and arena in MiB, holes_% = arena /
// live sum - 1, and the same without what stays for the whole step (tight_holes_%). `as_planned` is
// what the planner hands out; its time is that of the last word on a budget, once all plans are
// known.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"

#include "bench/gpt_like.h"
#include "graph/autodiff.h"
#include "kernels/backend.h"
#include "models/model.h"
#include "planner/lowering.h"
#include "planner/offsets.h"
#include "planner/strategy.h"

namespace {

using namespace reprise;
using planner::Bytes;
using Buffers = std::vector<schedule::Buffer>;

struct Work {
  const char* name;
  const char* model;  // empty: gpt_like
  models::ModelOptions options;
};

std::vector<Work> all_work() {
  return {{"resnet50_b4", "resnet50", {.batch = 4}},
          {"resnet50_b32", "resnet50", {.batch = 32}},
          {"unet", "unet", {.batch = 8, .channels = 3, .height = 256, .width = 256, .hidden = 64}},
          {"densenet", "densenet", {.batch = 32}},
          {"gpt_like", "", {}}};
}

schedule::Problem make_problem(const Work& work) {
  const graph::Graph forward = *work.model == '\0'
                                   ? bench::make_gpt_like({})
                                   : models::make_model(work.model, work.options).graph;
  graph::TrainingOptions training;
  training.optimizer = graph::SgdAttributes{.momentum = 0.9};
  const auto program =
      kernels::make_cpu_backend({})->prepare(graph::make_training_graph(forward, training).graph);
  return planner::make_problem(program->prepared()).problem;
}

Bytes whole_step_bytes(const Buffers& buffers) {
  std::int64_t horizon = 0;
  for (const auto& b : buffers) horizon = std::max(horizon, b.end);
  Bytes bytes = 0;
  for (const auto& b : buffers) bytes += b.start == 0 && b.end == horizon ? b.bytes : 0;
  return bytes;
}

struct Planned {
  schedule::Problem problem;
  planner::Request request;
  Bytes whole = 0, kept = 0;
  const planner::Strategy& strategy = planner::find_strategy("auto");

  std::optional<planner::Plan> within(int percent) {
    request.budget = whole + (kept - whole) / 100 * percent;
    const auto outcome = strategy.plan(request);
    const auto* plan = std::get_if<planner::Plan>(&outcome);
    return plan == nullptr ? std::nullopt : std::optional(*plan);
  }
  Buffers buffers_of(const planner::Plan& plan) const {
    return schedule::trace_order(problem, plan.order, plan.choices).trace.buffers.items();
  }
};

// Planning takes seconds: once per model.
Planned& planned(const Work& work) {
  static std::map<std::string, Planned> known;
  Planned& found = known[work.name];
  if (found.request.problem == nullptr) {
    found.problem = make_problem(work);
    found.request.problem = &found.problem;
    found.request.budget = Bytes{1} << 60;
    found.request.cache = planner::make_plan_cache();
    const auto kept =
        std::get<planner::Plan>(planner::find_strategy("keep_all").plan(found.request));
    found.whole = whole_step_bytes(found.buffers_of(kept));
    found.kept = kept.live_peak;
    (void)found.strategy.floor(found.request);
  }
  return found;
}

// The plan itself where `nodes` is negative.
void pack_plan(benchmark::State& state, const Work& work, int percent, std::int64_t nodes) {
  Planned& known = planned(work);
  std::optional<planner::Plan> plan = known.within(percent);
  if (!plan) return state.SkipWithError("below the floor");
  const Buffers buffers = known.buffers_of(*plan);
  planner::Packing packing;
  for (auto _ : state) {
    packing = nodes < 0 ? known.within(percent)->packing
                        : planner::pack(buffers, {.search_nodes = nodes});
  }
  const auto whole = static_cast<double>(whole_step_bytes(buffers));
  const auto live = static_cast<double>(packing.lower_bound);
  const auto arena = static_cast<double>(packing.arena);
  state.counters["cost"] = static_cast<double>(plan->cost);
  state.counters["budget_MiB"] = static_cast<double>(known.request.budget) / (1 << 20);
  state.counters["live_MiB"] = live / (1 << 20);
  state.counters["arena_MiB"] = arena / (1 << 20);
  state.counters["holes_%"] = packing.fragmentation() * 100;
  state.counters["tight_holes_%"] = ((arena - whole) / (live - whole) - 1) * 100;
  state.counters["buffers"] = static_cast<double>(buffers.size());
}

const bool registered = [] {
  for (const Work& work : all_work()) {
    for (const int percent : {50, 30}) {
      for (const std::int64_t nodes : {0, 20'000, 1'000'000, -1}) {
        const std::string name = std::string(work.name) + "/" + std::to_string(percent) +
                                 (nodes < 0 ? "%/as_planned" : "%/nodes:" + std::to_string(nodes));
        benchmark::RegisterBenchmark(
            name.c_str(), [=](benchmark::State& state) { pack_plan(state, work, percent, nodes); })
            ->Unit(benchmark::kMillisecond)
            ->Iterations(1);
      }
    }
  }
  return true;
}();

}  // namespace
