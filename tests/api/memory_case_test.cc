// What the memory is for: optimizer state, workspaces, packed weights, no reserve.

#include <algorithm>
#include <gmock/gmock.h>

#include "graph/autodiff.h"
#include "tests/api/training_case.h"

namespace reprise::api {
namespace {

using testing::HasSubstr;

struct OptimizerCase {
  std::string name;
  graph::Optimizer optimizer;
  Bytes state_bytes;
};

// 9,999 -> 99 -> 100 with biases: 9,999 * 99 + 99 + 99 * 100 + 100 = 1,000,000 parameters.
models::Model million() {
  return models::make_model("mlp", {.batch = 2,
                                    .channels = 1,
                                    .height = 99,
                                    .width = 101,
                                    .classes = 100,
                                    .hidden = 99,
                                    .layers = 1});
}

TEST(MemoryCase, OptimizerStateIsThereBeforeTheFirstStepAndAfterALoad) {
  const models::Model model = million();
  ASSERT_EQ(graph::parameter_count(model.graph), 1'000'000);
  const std::vector<OptimizerCase> cases{
      {"sgd", graph::SgdAttributes{.rate = {.base = 0.1}}, 0},
      {"momentum", graph::SgdAttributes{.rate = {.base = 0.1}, .momentum = 0.9}, 4'000'000},
      {"adam", graph::AdamAttributes{.rate = {.base = 0.1}}, 8'000'000},
  };
  Bytes parameters = 0;  // those of sgd, which has nothing else
  for (const OptimizerCase& each : cases) {
    SCOPED_TRACE(each.name);
    const graph::TrainingOptions training{.optimizer = each.optimizer};
    const auto session = make_session(model, on("cpu", "keep_all"), training);
    if (parameters == 0) parameters = session->report().persistent_bytes;
    // Four parameters, up to two states each, every one rounded up to 64 bytes.
    const Bytes state = session->report().persistent_bytes - parameters;
    EXPECT_GE(state, each.state_bytes);
    EXPECT_LE(state, each.state_bytes + 4 * 2 * 63);
    // An update is done where the parameter lies.
    const auto& prepared = session->planned().prepared;
    for (std::size_t i = 0; i < prepared.graph.nodes.size(); ++i) {
      const graph::NodeId node(i);
      if (prepared.graph.nodes[node].phase != graph::Phase::kUpdate) continue;
      EXPECT_EQ(prepared.nodes[node].workspace_bytes, 0) << prepared.graph.nodes[node].name;
    }
    const auto resumed = make_session(model, on("cpu", "keep_all"), training);
    for (std::size_t step = 0; step < 3; ++step) {
      Session& running = step < 2 ? *session : *resumed;
      if (step == 2) {
        for (const auto& variable : session->variables()) {
          resumed->write(variable.name, session->read(variable.name));
        }
      }
      feed(running, model.graph, 100, step);
      running.step();
      EXPECT_EQ(running.peak_bytes_measured(), running.report().peak_bytes) << step;
      EXPECT_EQ(running.arena_bytes(), session->report().peak_bytes);
    }
  }
}

// conv 3x3, 64 -> 64, on 32x64x56x56, forward and both backward directions. Every instruction's
// workspace is in the arena, and the arena has room for the largest of them, not for their sum.
models::Model big_convolution() {
  models::Model model;
  graph::Builder b("conv");
  model.initializers.push_back({"first", {Kind::kNormal, 0.1}});
  model.initializers.push_back({"second", {Kind::kNormal, 0.1}});
  const graph::ValueId x = b.input("x", {32, 64, 56, 56});
  const graph::Conv2dAttributes same{.padding = {1, 1}};
  const graph::ValueId h = b.conv2d(x, b.parameter("first", {64, 64, 3, 3}), same, "conv1");
  b.set_loss(b.reduce_mean(b.conv2d(h, b.parameter("second", {64, 64, 3, 3}), same, "conv2")));
  model.graph = b.finish();
  return model;
}

// The largest sum of live slots, workspaces left out.
Bytes tensor_bytes(const schedule::Schedule& schedule) {
  const auto lifetimes = schedule::slot_lifetimes(schedule);
  Bytes most = 0;
  for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
    std::vector<std::pair<Bytes, Bytes>> live;  // in-place pairs lie at one offset and count once
    for (std::size_t s = 0; s < schedule.slots.size(); ++s) {
      const schedule::SlotId slot(s);
      const auto at = static_cast<std::int64_t>(i);
      if (at < lifetimes[slot].start || at >= lifetimes[slot].end) continue;
      live.emplace_back(schedule.slots[slot].offset,
                        base::align_up(schedule.slots[slot].bytes, graph::kArenaAlignment));
    }
    std::sort(live.begin(), live.end());
    live.erase(std::unique(live.begin(), live.end()), live.end());
    Bytes sum = 0;
    for (const auto& [offset, bytes] : live) sum += bytes;
    most = std::max(most, sum);
  }
  return most;
}

TEST(MemoryCase, WorkspacesOfConvolutionsAreInTheBudget) {
  const models::Model model = big_convolution();
  const graph::TrainingOptions training{.optimizer = graph::SgdAttributes{.rate = {.base = 0.1}}};
  const auto backend = kernels::make_backend("cpu", {.threads = 1});
  const auto program = backend->prepare(graph::make_training_graph(model.graph, training).graph);
  const auto planned = plan_step(program->prepared(), on("cpu", "keep_all").plan);
  const auto& all = std::get<PlannedTraining>(planned);
  Bytes largest = 0;
  Bytes sum = 0;
  for (const auto& instruction : all.step.schedule.instructions) {
    const Bytes bytes = base::align_up(instruction.workspace_bytes, graph::kArenaAlignment);
    largest = std::max(largest, bytes);
    sum += bytes;
  }
  const Bytes tensors = tensor_bytes(all.step.schedule);
  EXPECT_LE(all.report.peak_bytes, tensors + largest);
  EXPECT_TRUE(largest == sum || all.report.peak_bytes < tensors + sum);
  for (const Bytes extra : {Bytes{0}, 8 * base::kMiB, 256 * base::kMiB}) {
    PlanOptions options = on("cpu", "keep_all").plan;
    options.budget = bytes_budget(tensors + extra);
    const auto outcome = plan_step(program->prepared(), options);
    if (const auto* refused = std::get_if<planner::Infeasible>(&outcome)) {
      EXPECT_LT(extra, largest);  // only for want of the workspace, and the answer says how much
      EXPECT_GT(refused->floor, tensors + extra);
      EXPECT_LE(refused->floor, tensors + largest);
      EXPECT_THAT(refused->bound_by, HasSubstr("conv"));
    } else {
      EXPECT_LE(std::get<PlannedTraining>(outcome).report.peak_bytes, tensors + extra);
    }
  }
}

// The same at a size that runs in no time: what a step touches is what was planned, at the floor
// too.
TEST(MemoryCase, AConvolutionStaysInItsBudgetWhenItRuns) {
  models::Model model = models::make_model(
      "resnet20", {.batch = 2, .channels = 3, .height = 16, .width = 16, .classes = 4});
  for (const Budget& budget : {Budget{}, Budget{.kind = Budget::Kind::kFloor}}) {
    const auto session = make_session(model, on("cpu", "auto", budget),
                                      {.optimizer = graph::SgdAttributes{.momentum = 0.9}});
    feed(*session, model.graph, 4, 0);
    session->step();
    EXPECT_EQ(session->peak_bytes_measured(), session->report().peak_bytes);
    EXPECT_LE(session->peak_bytes_measured(), session->report().budget_bytes);
  }
}

// LSTM 1024 -> 1024 (32 MiB of weights) at 64 single steps that share them: beside the parameters
// there is at most one packed copy and one gradient, not one per step.
TEST(MemoryCase, SharedRecurrentWeightsHaveOnePackedCopyAndOneGradient) {
  constexpr Bytes kWeights = 2 * 4096 * 1024 * 4;
  const models::Model model = models::make_model(
      "lstm",
      {.batch = 1, .hidden = 1024, .layers = 1, .vocabulary = 8, .seq_len = 64, .chunk = 1});
  const auto backend = kernels::make_backend("cpu", {.threads = 1});
  const auto program = backend->prepare(
      graph::make_training_graph(model.graph, {.optimizer = graph::SgdAttributes{}}).graph);
  const auto planned = plan_step(program->prepared(), on("cpu", "keep_all").plan);
  const auto& plan = std::get<PlannedTraining>(planned);
  const auto& values = program->prepared().graph.values;
  const auto is_weight = [&](const schedule::Slot& slot) {
    return values[slot.value].shape == graph::Shape{4096, 1024};
  };
  schedule::Schedule weights = plan.step.schedule;
  for (auto& slot : weights.slots) slot.bytes = is_weight(slot) ? slot.bytes : 0;
  const Bytes most = tensor_bytes(weights);
  EXPECT_GE(most, 2 * kWeights);  // parameters and gradients
  EXPECT_LE(most, 3 * kWeights + 64);
  // All else, activations and workspaces, is small: 64 steps of 5 * 1024 floats and a few more.
  EXPECT_LE(plan.report.peak_bytes, most + 64 * 16 * 1024 * 4);
}

// The budget is for the step; what the process needs besides is not taken from it, however little
// it is.
TEST(MemoryCase, ATinyJobIsAcceptedToTheByte) {
  const models::Model model = models::make_model("mlp", {.batch = 4,
                                                         .channels = 1,
                                                         .height = 4,
                                                         .width = 4,
                                                         .classes = 4,
                                                         .hidden = 40,
                                                         .layers = 1});
  const graph::TrainingOptions training{.optimizer = graph::SgdAttributes{.rate = {.base = 0.1}}};
  const Bytes needs = make_session(model, on("cpu", "keep_all"), training)->arena_bytes();
  EXPECT_LT(needs, 18 * base::kKiB);
  const auto session = make_session(model, on("cpu", "auto", bytes_budget(needs)), training);
  EXPECT_EQ(session->report().recomputed_nodes, 0);
  feed(*session, model.graph, 4, 0);
  session->step();
  EXPECT_LE(session->peak_bytes_measured(), needs);
}

// A budget above what the machine has takes what the step needs and no more.
TEST(MemoryCase, ABudgetBeyondTheMachineReservesWhatTheStepNeeds) {
  const models::Model model = models::make_model("mlp", {.batch = 4, .hidden = 8, .layers = 1});
  const graph::TrainingOptions training{.optimizer = graph::SgdAttributes{}};
  const auto session =
      make_session(model, on("cpu", "auto", bytes_budget(Bytes{1} << 50)), training);
  EXPECT_EQ(session->arena_bytes(), session->report().keep_all_bytes);
}

}  // namespace
}  // namespace reprise::api
