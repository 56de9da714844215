// Planning and packing against the size of the graph: a chain of blocks (conv, norm, relu, with a
// skip every other block) with its backward part, as a residual net has.

#include <string>
#include <vector>

#include "benchmark/benchmark.h"

#include "planner/offsets.h"
#include "planner/strategy.h"

namespace {

using namespace reprise;
using planner::Bytes;
using schedule::Op;
using schedule::Problem;
using schedule::TensorId;
using schedule::TensorKind;

constexpr Bytes kBytes = 1 << 20;

class BlockChain {
 public:
  explicit BlockChain(std::int64_t blocks) {
    TensorId x = tensor(TensorKind::kInput);
    std::vector<Block> made;
    for (std::int64_t i = 0; i < blocks; ++i) {
      Block b{.x = x, .conv = tensor(), .relu = tensor()};
      op({x}, {b.conv}, 100);
      const TensorId norm = tensor();
      op({b.conv}, {norm}, 10);
      op({norm}, {b.relu}, 10).inplace = {{0, 0, false}};
      x = b.relu;
      if (i % 2 == 1) {
        x = tensor();
        op({b.relu, made.back().x}, {x}, 10).inplace = {{0, 0, false}};
      }
      made.push_back(b);
    }
    TensorId g = tensor();
    backward({x}, {g}, 10);
    for (auto b = made.rbegin(); b != made.rend(); ++b) {
      const TensorId dr = tensor(), dn = tensor(), dx = tensor();
      backward({b->relu, g}, {dr}, 10).inplace = {{1, 0, false}};
      backward({b->conv, dr}, {dn}, 10).inplace = {{1, 0, false}};
      backward({b->x, dn}, {dx}, 200);
      g = dx;
    }
    problem.tensors[g].kind = TensorKind::kOutput;
  }

  Problem problem;

 private:
  struct Block {
    TensorId x, conv, relu;
  };
  TensorId tensor(TensorKind kind = TensorKind::kTemp) {
    return problem.tensors.push_back({std::to_string(problem.tensors.size()), kBytes, kind});
  }
  Op& op(std::vector<TensorId> inputs, std::vector<TensorId> outputs, std::int64_t cost) {
    Op op;
    op.name = std::to_string(problem.ops.size());
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    op.cost = cost;
    return problem.ops[problem.ops.push_back(op)];
  }
  Op& backward(std::vector<TensorId> inputs, std::vector<TensorId> outputs, std::int64_t cost) {
    Op& made = op(std::move(inputs), std::move(outputs), cost);
    made.backward = true;
    return made;
  }
};

void plan_with(benchmark::State& state, const char* strategy) {
  const BlockChain chain(state.range(0));
  planner::Request request;
  request.problem = &chain.problem;
  request.budget = Bytes{1} << 50;
  for (auto _ : state) {
    benchmark::DoNotOptimize(planner::find_strategy(strategy).floor(request));
  }
  state.counters["ops"] = static_cast<double>(chain.problem.ops.size());
  state.SetComplexityN(static_cast<std::int64_t>(chain.problem.ops.size()));
}
BENCHMARK_CAPTURE(plan_with, keep_all, "keep_all")
    ->Range(16, 1 << 14)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();
BENCHMARK_CAPTURE(plan_with, sqrt_n, "sqrt_n")
    ->Range(16, 1 << 14)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();
BENCHMARK_CAPTURE(plan_with, segments, "segments")
    ->Range(16, 1 << 12)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_with, auto, "auto") -> Range(16, 1 << 12) -> Unit(benchmark::kMillisecond);

// Packing alone, of a plan that recomputes.
void pack_a_plan(benchmark::State& state) {
  const BlockChain chain(state.range(0));
  planner::Request request;
  request.problem = &chain.problem;
  request.budget = Bytes{1} << 50;
  const auto outcome = planner::find_strategy("sqrt_n").plan(request);
  const auto traced = schedule::trace_order(chain.problem, std::get<planner::Plan>(outcome).order);
  double holes = 0;
  for (auto _ : state) {
    holes = planner::pack(traced.trace.buffers.items()).fragmentation();
  }
  state.counters["buffers"] = static_cast<double>(traced.trace.buffers.size());
  state.counters["fragmentation"] = holes;
}
BENCHMARK(pack_a_plan)->Range(16, 1 << 14)->Unit(benchmark::kMillisecond);

}  // namespace
