// How long chains of unequal stages take to plan, for all budgets at once, and how far plans are
// from the bound: sizes at random up to 10^9 bytes, and sizes that fall in four steps as those of a
// residual network do. Time is that of all threads. Counters: gap_N is cost / lower bound - 1 in %
// at N % of what recording everything takes. `window_loss` plans 200 stages as if they were many
// more: by how much, in %, plans at 5, 6, ... 99 % then cost more than the optimum of their class.

#include <algorithm>
#include <string>

#include "benchmark/benchmark.h"

#include "planner/chain/bound.h"
#include "planner/chain/solve.h"
#include "planner/chain/table.h"
#include "planner/random.h"

namespace {

using namespace reprise::planner;

ChainProblem random_chain(std::int32_t length, Random& random) {
  ChainProblem problem;
  problem.input = problem.input_gradient = random.below(1'000'000'000);
  problem.loss_cost = 1'000;
  for (std::int32_t i = 0; i < length; ++i) {
    Stage stage;
    stage.output = stage.output_gradient = random.below(1'000'000'000);
    stage.forward_cost = 1 + random.below(1'000'000);
    stage.forward_workspace = random.below(100'000'000);
    const Bytes record = stage.output + Bytes{3} * random.below(1'000'000'000);
    stage.options.push_back({stage.forward_cost, 2 * stage.forward_cost, record,
                             stage.forward_workspace, random.below(100'000'000)});
    problem.stages.push_back(stage);
  }
  return problem;
}

// Blocks of a residual network, batch 32: outputs of 98 MiB that halve three times.
ChainProblem residual_chain(std::int32_t length, Random& random) {
  ChainProblem problem;
  problem.input = 19'267'584;
  problem.loss_cost = 1'000;
  problem.loss_workspace = 4'096;
  for (std::int32_t i = 0; i < length; ++i) {
    const std::int32_t part = 4 * i / length;
    Stage stage;
    stage.output = stage.output_gradient = Bytes{102'760'448} >> part;
    stage.forward_cost = 1'000'000 + 50'000 * part + random.below(300'000);
    stage.forward_workspace = stage.output / 8;
    const Bytes record = stage.output * (i % 7 == 0 ? 5 : 3) + Bytes{1 << 20} * random.below(4);
    stage.options.push_back({stage.forward_cost, 2 * stage.forward_cost, record,
                             stage.forward_workspace, stage.output / 4});
    problem.stages.push_back(stage);
  }
  return problem;
}

ChainProblem make_chain(bool residual, std::int32_t length) {
  Random random(1);
  return residual ? residual_chain(length, random) : random_chain(length, random);
}

void solve(benchmark::State& state, bool residual, std::int32_t length, int threads) {
  const ChainProblem problem = make_chain(residual, length);
  ChainOptions options;
  options.threads = threads;
  for (auto _ : state) {
    const ChainSolver solver(problem, options);
    const Bytes all = solver.answers().back().memory;
    for (const int percent : {80, 60, 50, 40, 30, 20, 10, 5}) {
      const Bytes budget = all / 100 * percent;
      const ChainOutcome outcome = solver.plan(budget);
      const auto* plan = std::get_if<ChainPlan>(&outcome);
      if (plan == nullptr) continue;
      state.counters["gap_" + std::to_string(percent)] =
          100 * (static_cast<double>(plan->cost) / static_cast<double>(plan->lower_bound) - 1);
    }
    state.counters["plans"] = static_cast<double>(solver.answers().size());
  }
}

void window_loss(benchmark::State& state, bool residual, bool drop_inputs) {
  const ChainProblem problem = make_chain(residual, 200);
  ChainTableOptions options;
  options.drop_inputs = drop_inputs;
  const ChainTable exact(problem, options);
  options.window = drop_inputs ? 32 : 64;
  options.grid = 8;
  options.most_steps = drop_inputs ? 128 : 256;
  options.most_loss_steps = 4'000;
  const Bytes all = exact.answers().back().memory;
  double worst = 0, sum = 0, counted = 0;
  for (auto _ : state) {
    const ChainTable windowed(problem, options);
    for (int percent = 5; percent < 100; ++percent) {
      const StairStep* best = step_within(exact.answers(), all / 100 * percent);
      const StairStep* found = step_within(windowed.answers(), all / 100 * percent);
      if (best == nullptr || found == nullptr) continue;
      const double loss = static_cast<double>(found->cost) / static_cast<double>(best->cost) - 1;
      worst = std::max(worst, loss);
      sum += loss;
      ++counted;
    }
  }
  state.counters["worst_loss"] = 100 * worst;
  state.counters["mean_loss"] = 100 * sum / counted;
}

const bool registered = [] {
  for (const bool residual : {false, true}) {
    const std::string kind = residual ? "residual" : "random";
    for (const std::int32_t length : {50, 100, 200, 1000}) {
      for (const int threads : {1, 2}) {
        const std::string name =
            kind + "/" + std::to_string(length) + "/threads:" + std::to_string(threads);
        benchmark::RegisterBenchmark(
            name.c_str(), [=](benchmark::State& state) { solve(state, residual, length, threads); })
            ->Unit(benchmark::kMillisecond)
            ->MeasureProcessCPUTime()
            ->Iterations(1);
      }
    }
    for (const bool drop_inputs : {false, true}) {
      const std::string name = "window_loss/" + kind + (drop_inputs ? "/dropping" : "/persistent");
      benchmark::RegisterBenchmark(
          name.c_str(), [=](benchmark::State& state) { window_loss(state, residual, drop_inputs); })
          ->Unit(benchmark::kMillisecond)
          ->MeasureProcessCPUTime()
          ->Iterations(1);
    }
  }
  return true;
}();

}  // namespace
