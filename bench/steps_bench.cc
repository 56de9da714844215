// Whole training steps, planners side by side at several budgets: what recomputation costs next to
// what was planned. Plans weigh costs that are measured here, before the first step of each model.
//
// Counters: items/s; flop/s over all kernel runs of the schedule, repeated ones too; the arena; the
// plan's own time for the step, to be held against the measured one; its planned overhead.

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"

#include "api/profile.h"
#include "api/session.h"
#include "bench/batch.h"
#include "models/model.h"
#include "schedule/usage.h"

namespace {

using namespace reprise;

struct Work {
  const char* name;
  const char* model;
  models::ModelOptions options;
};

std::vector<Work> all_work() {
  models::ModelOptions fashion{
      .batch = 64, .channels = 1, .height = 28, .width = 28, .classes = 10};
  models::ModelOptions imagenet{.batch = 4};
  models::ModelOptions cifar{.batch = 32, .channels = 3, .height = 32, .width = 32, .classes = 10};
  models::ModelOptions text{.batch = 16, .hidden = 256, .vocabulary = 96, .seq_len = 256};
  models::ModelOptions long_text = text;
  long_text.seq_len = 1000;
  long_text.chunk = 8;
  return {{"resnet20", "resnet20", fashion},
          {"resnet50", "resnet50", imagenet},
          {"resnet110", "resnet110", cifar},
          {"lstm", "lstm", text},
          {"lstm1000", "lstm", long_text}};
}

using bench::Batch;
using bench::make_batch;

// As a trainer does: the batch is written anew for each step, since its bytes are free after use.
float run_step(api::Session& session, const Batch& batch) {
  for (const auto& [name, plain] : batch) session.set_input(name, plain);
  return session.step();
}

double flops_of(const schedule::PlannedStep& step) {
  double flops = 0;
  for (const auto& instruction : step.schedule.instructions) {
    flops += step.prepared.nodes[instruction.node].flops;
  }
  return flops;
}

// The budget that leaves `percent` of the activations at the peak of keeping everything.
api::Budget part_of_activations(const api::Session& whole, int percent) {
  const auto& step = whole.planned();
  const base::Bytes activations = schedule::measure_usage(step.prepared, step.schedule)
                                      .at_peak(schedule::Category::kActivation);
  const base::Bytes bytes = whole.report().keep_all_bytes - activations * (100 - percent) / 100;
  return {.kind = api::Budget::Kind::kBytes, .bytes = bytes};
}

// The file with the costs of the model's nodes, measured when first asked for.
std::filesystem::path measured_costs(const Work& work) {
  static std::map<std::string, std::filesystem::path> files;
  std::filesystem::path& file = files[work.name];
  if (file.empty()) {
    api::TrainOptions options;
    options.model = work.model;
    options.model_options = work.options;
    options.evaluate = false;
    file = std::filesystem::temp_directory_path() /
           ("reprise_steps_" + std::to_string(::getpid()) + "_" + work.name + ".json");
    runtime::save_costs(file, api::profile(options, {}).table);
  }
  return file;
}

std::unique_ptr<api::Session> make_session(const Work& work, const models::Model& model,
                                           const std::string& planner, const api::Budget& budget) {
  api::SessionOptions options;
  options.plan.planner = planner;
  options.plan.budget = budget;
  options.costs = {.kind = api::CostChoice::Kind::kFile, .file = measured_costs(work)};
  auto made = api::Session::create(model, {}, {}, options);
  auto* session = std::get_if<std::unique_ptr<api::Session>>(&made);
  return session == nullptr ? nullptr : std::move(*session);
}

// One row of the table. Its session serves all repetitions, so that planning is done once; all
// sessions stay, since repetitions of different rows take turns (scripts/bench.sh).
struct Row {
  Work work;
  std::string planner;
  int percent = 100;

  [[nodiscard]] std::string name() const {
    return std::string(work.name) + "/activations:" + std::to_string(percent) + "%/" + planner;
  }
};

std::unique_ptr<api::Session> plan_row(const Row& row, const models::Model& model) {
  auto session = make_session(row.work, model, "keep_all", {});
  if (row.planner == "keep_all") return session;
  const api::Budget budget = part_of_activations(*session, row.percent);
  session.reset();
  return make_session(row.work, model, row.planner, budget);
}

// Null where the budget is below the planner's floor.
api::Session* session_of(const Row& row, const models::Model& model) {
  static std::map<std::string, std::unique_ptr<api::Session>> sessions;
  const auto [at, is_new] = sessions.try_emplace(row.name());
  if (is_new) at->second = plan_row(row, model);
  return at->second.get();
}

void run_steps(benchmark::State& state, const Row& row) {
  const Work& work = row.work;
  const models::Model model = models::make_model(work.model, work.options);
  api::Session* session = session_of(row, model);
  if (session == nullptr) return state.SkipWithError("below the floor of this planner");
  const Batch batch = make_batch(model.graph);
  benchmark::DoNotOptimize(run_step(*session, batch));  // warms caches and pages
  for (auto _ : state) benchmark::DoNotOptimize(run_step(*session, batch));

  const auto& report = session->report();
  const auto options = models::complete_options(work.model, work.options);
  const std::int64_t items = options.batch * std::max<std::int64_t>(1, options.seq_len);
  const auto steps = static_cast<double>(state.iterations());
  state.counters["items/s"] =
      benchmark::Counter(static_cast<double>(items) * steps, benchmark::Counter::kIsRate);
  state.counters["flop/s"] =
      benchmark::Counter(flops_of(session->planned()) * steps, benchmark::Counter::kIsRate);
  state.counters["arena_MiB"] = static_cast<double>(report.peak_bytes) / (1 << 20);
  state.counters["planned_ms"] = static_cast<double>(report.cost_ns) * 1e-6;
  state.counters["overhead_%"] = report.overhead * 100.0;
}

void add_benchmark([[maybe_unused]] const Row& row) {
#ifndef __clang_analyzer__  // takes what the library keeps for a leak
  benchmark::RegisterBenchmark(row.name().c_str(),
                               [row](benchmark::State& state) { run_steps(state, row); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
#endif
}

const bool registered = [] {
  for (const Work& work : all_work()) {
    add_benchmark({work, "keep_all"});
    for (const int percent : {50, 33, 25, 10}) {
      for (const char* planner : {"auto", "segments", "sqrt_n"}) {
        add_benchmark({work, planner, percent});
      }
    }
  }
  return true;
}();

}  // namespace
