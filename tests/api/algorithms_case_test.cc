// A made-up backend with several algorithms for each node, from plan to executed step: every budget
// runs the algorithms that its plan says, each within its own workspace, and ends with the same
// bits.

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <map>

#include "graph/autodiff.h"
#include "kernels/backend.h"
#include "models/model.h"
#include "planner/lowering.h"
#include "runtime/executor.h"
#include "schedule/verify.h"

namespace reprise::api {
namespace {

using base::Bytes;
using graph::NodeId;
using graph::ValueId;
constexpr Bytes kWide = 4096;

// The reference kernels. Algorithm 0 takes 4 KiB more of workspace than they book, algorithm 1 half
// of that and twice the time, algorithm 2 nothing more and four times the time.
class ManyAlgorithms final : public kernels::Program {
 public:
  explicit ManyAlgorithms(const graph::Graph& graph)
      : inner_(kernels::make_reference_backend()->prepare(graph)), prepared_(inner_->prepared()) {
    for (graph::PreparedNode& node : prepared_.nodes) {
      booked_.push_back(node.workspace_bytes);
      const std::int64_t cost = node.cost_ns + 1;
      node.others = {{"half", node.workspace_bytes + kWide / 2, 2 * cost},
                     {"lean", node.workspace_bytes, 4 * cost}};
      node.workspace_bytes += kWide;
      node.cost_ns = cost;
    }
  }

  [[nodiscard]] const graph::PreparedGraph& prepared() const override { return prepared_; }

  // Writes over all of the workspace that the algorithm has.
  void run(NodeId node, const kernels::Call& call, const graph::StepContext& context) override {
    const Bytes bytes =
        prepared_.nodes[node].workspace_of(static_cast<std::size_t>(call.algorithm));
    if (bytes > 0) std::memset(call.workspace, 0xA5, static_cast<std::size_t>(bytes));
    calls.emplace_back(node, call.algorithm);
    kernels::Call plain = call;
    plain.algorithm = 0;
    if (booked_[node.index()] == 0) plain.workspace = nullptr;
    inner_->run(node, plain, context);
  }
  void import_value(ValueId value, std::span<const std::byte> plain, std::byte* stored) override {
    inner_->import_value(value, plain, stored);
  }
  void export_value(ValueId value, const std::byte* stored, std::span<std::byte> plain) override {
    inner_->export_value(value, stored, plain);
  }

  std::vector<std::pair<NodeId, std::int32_t>> calls;

 private:
  std::unique_ptr<kernels::Program> inner_;
  graph::PreparedGraph prepared_;
  std::vector<Bytes> booked_;
};

graph::Graph small_step() {
  models::ModelOptions options{.batch = 4};
  options.channels = 1;
  options.height = options.width = 4;
  options.hidden = 16;
  options.layers = 3;
  options.classes = 3;
  return graph::make_training_graph(models::make_model("mlp", options).graph,
                                    {.optimizer = graph::SgdAttributes{.momentum = 0.9}})
      .graph;
}

std::vector<std::byte> some_content(const graph::Value& value) {
  const auto count = static_cast<std::size_t>(graph::element_count(value.shape));
  std::vector<std::byte> bytes(count * static_cast<std::size_t>(graph::dtype_bytes(value.dtype)));
  for (std::size_t i = 0; i < count; ++i) {
    const float real = static_cast<float>((i * 37 + 5) % 23) / 44.0f - 0.25f;
    const auto whole = static_cast<std::int32_t>(i % 3);
    std::memcpy(bytes.data() + i * 4,
                value.dtype == graph::DType::kI32 ? static_cast<const void*>(&whole)
                                                  : static_cast<const void*>(&real),
                4);
  }
  return bytes;
}

struct Ran {
  std::map<std::string, std::vector<std::byte>> state;  // persistent values after two steps
  std::array<int, 3> used{};                            // runs with each algorithm
  std::int64_t cost = 0;
};

// Two steps of the cheapest plan within the budget, in debug mode; its calls are those of the plan.
Ran run_within(const planner::GraphProblem& problem, const planner::Request& request) {
  ManyAlgorithms program(small_step());
  const graph::PreparedGraph& prepared = program.prepared();
  const auto plan = std::get<planner::Plan>(planner::find_strategy("dag").plan(request));
  const schedule::Schedule schedule = planner::lower(prepared, problem, plan);
  EXPECT_TRUE(schedule::verify(prepared, schedule).empty());
  EXPECT_LE(schedule.arena_bytes, request.budget);
  runtime::Arena arena(schedule.arena_bytes);
  runtime::Executor executor(program, schedule, arena, {.debug = true});
  Ran result;
  result.cost = plan.cost;
  for (int step = 0; step < 2; ++step) {
    for (std::size_t i = 0; i < prepared.graph.values.size(); ++i) {
      const graph::Value& value = prepared.graph.values[ValueId(i)];
      const bool input = value.role == graph::Role::kInput;
      if (value.producer.valid() || (step > 0 && !input)) continue;
      executor.write(ValueId(i), some_content(value));
    }
    program.calls.clear();
    executor.run({});
    EXPECT_EQ(program.calls.size(), schedule.instructions.size());
    for (std::size_t i = 0; i < program.calls.size(); ++i) {
      const schedule::Instruction& at = schedule.instructions[i];
      EXPECT_EQ(program.calls[i], std::pair(at.node, at.algorithm)) << "instruction " << i;
      ++result.used.at(static_cast<std::size_t>(at.algorithm));
    }
  }
  for (std::size_t i = 0; i < prepared.graph.values.size(); ++i) {
    const graph::Value& value = prepared.graph.values[ValueId(i)];
    if (value.producer.valid() || !graph::is_persistent(value.role)) continue;
    std::vector<std::byte> bytes = some_content(value);
    executor.read(ValueId(i), bytes);
    result.state[value.name] = std::move(bytes);
  }
  return result;
}

TEST(AlgorithmsCase, EachBudgetRunsItsOwnAndEndsWithTheSameBits) {
  const planner::GraphProblem problem =
      planner::make_problem(ManyAlgorithms(small_step()).prepared());
  planner::Request request;
  request.problem = &problem.problem;
  request.search_moves = 20;
  request.cache = planner::make_plan_cache();
  request.budget = Bytes{1} << 40;
  const planner::Strategy& strategy = planner::find_strategy("dag");
  const Bytes top = std::get<planner::Plan>(strategy.plan(request)).arena;
  const Bytes floor = strategy.floor(request);
  ASSERT_GE(top - floor, kWide / 2);
  const Ran fastest = run_within(problem, request);
  EXPECT_EQ(fastest.used[1] + fastest.used[2], 0);
  std::int64_t last_cost = fastest.cost;
  bool half = false, lean = false;
  for (int i = 3; i >= 0; --i) {
    request.budget = floor + (top - floor) * i / 4;
    const Ran ran = run_within(problem, request);
    EXPECT_EQ(ran.state, fastest.state) << "budget " << request.budget;
    EXPECT_GE(ran.cost, last_cost);
    last_cost = ran.cost;
    half = half || ran.used[1] > 0;
    lean = lean || ran.used[2] > 0;
  }
  EXPECT_TRUE(half);
  EXPECT_TRUE(lean);
  EXPECT_GT(last_cost, fastest.cost);
}

}  // namespace
}  // namespace reprise::api
