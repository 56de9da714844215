// What the executor itself costs: time per instruction of a program whose kernels do nothing.
// Bound: one virtual call and the loads of one bound instruction, a few nanoseconds.

#include <benchmark/benchmark.h>
#include <cstring>
#include <string>

#include "kernels/backend.h"
#include "runtime/executor.h"

namespace {

using reprise::graph::NodeId;
using reprise::graph::ValueId;
using reprise::schedule::SlotId;
namespace graph = reprise::graph;
namespace kernels = reprise::kernels;
namespace runtime = reprise::runtime;
namespace schedule = reprise::schedule;

// A chain of nodes that read two values and write one, with a workspace, and do nothing.
class EmptyProgram : public kernels::Program {
 public:
  explicit EmptyProgram(std::size_t nodes) {
    add_value(graph::Role::kInput);
    for (std::size_t i = 0; i < nodes; ++i) {
      graph::Node node;
      node.name = "node" + std::to_string(i);
      node.op = graph::OpKind::kAdd;
      node.inputs = {ValueId(i), ValueId(0)};
      node.outputs = {add_value(graph::Role::kActivation)};
      prepared_.graph.values[node.outputs[0]].producer = NodeId(i);
      prepared_.graph.nodes.push_back(std::move(node));
      graph::PreparedNode booked;
      booked.workspace_bytes = 64;
      prepared_.nodes.push_back(booked);
    }
  }

  // Values lie in turn in two slots' places: input at 0, the others at 64 and 128.
  [[nodiscard]] schedule::Schedule schedule() const {
    schedule::Schedule result;
    result.arena_bytes = 256;
    for (std::size_t i = 0; i < prepared_.graph.values.size(); ++i) {
      const reprise::base::Bytes offset = i == 0 ? 0 : 64 + 64 * static_cast<int>(i % 2);
      result.slots.push_back({ValueId(i), offset, 64});
    }
    result.entry = {SlotId(0)};
    for (std::size_t i = 0; i < prepared_.graph.nodes.size(); ++i) {
      result.instructions.push_back({NodeId(i), {SlotId(i), SlotId(0)}, {SlotId(i + 1)}, 192, 64});
    }
    return result;
  }

  [[nodiscard]] const graph::PreparedGraph& prepared() const override { return prepared_; }
  void run(NodeId, const kernels::Call& call, const graph::StepContext&) override {
    benchmark::DoNotOptimize(call.outputs[0]);
  }
  void import_value(ValueId, std::span<const std::byte> plain, std::byte* stored) override {
    std::memcpy(stored, plain.data(), plain.size());
  }
  void export_value(ValueId, const std::byte* stored, std::span<std::byte> plain) override {
    std::memcpy(plain.data(), stored, plain.size());
  }

 private:
  ValueId add_value(graph::Role role) {
    graph::Value value;
    value.name = "value" + std::to_string(prepared_.graph.values.size());
    value.shape = {16};
    value.role = role;
    prepared_.value_bytes.push_back(64);
    prepared_.value_layouts.push_back("plain");
    return prepared_.graph.values.push_back(std::move(value));
  }

  graph::PreparedGraph prepared_;
};

void BM_ExecutorPerInstruction(benchmark::State& state) {
  const auto instructions = static_cast<std::size_t>(state.range(0));
  EmptyProgram program(instructions);
  runtime::Arena arena(256);
  runtime::Executor executor(program, program.schedule(), arena);
  std::uint64_t step = 0;
  for (auto _ : state) executor.run({.seed = 1, .step = step++});
  // Seconds per instruction: iterations * instructions per second, inverted.
  state.counters["per_instruction"] = benchmark::Counter(
      static_cast<double>(instructions),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_ExecutorPerInstruction)->Arg(100)->Arg(10'000)->Arg(100'000);

void BM_ExecutorBinding(benchmark::State& state) {
  EmptyProgram program(static_cast<std::size_t>(state.range(0)));
  const schedule::Schedule schedule = program.schedule();
  runtime::Arena arena(256);
  for (auto _ : state) runtime::Executor executor(program, schedule, arena);
}
BENCHMARK(BM_ExecutorBinding)->Arg(100)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

}  // namespace
