#include "planner/lowering.h"

#include <algorithm>

#include "gtest/gtest.h"

#include "graph/builder.h"
#include "schedule/verify.h"
#include "tests/planner/prepared_model.h"

namespace reprise::planner {
namespace {

using schedule::TensorKind;

const schedule::Tensor* find_tensor(const Problem& problem, const std::string& name) {
  for (const schedule::Tensor& t : problem.tensors) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

// x[2,3] (24 bytes) -> reshape [6] -> relu -> loss; a relu nobody reads; frozen and trained
// weights.
graph::PreparedGraph small_step() {
  graph::Builder b("small");
  const auto x = b.input("x", {2, 3});
  const auto frozen = b.parameter("frozen", {3, 3}, false);
  const auto w = b.parameter("w", {3, 3});
  const auto h = b.matmul(x, frozen, {}, "h");
  const auto y = b.matmul(h, w, {}, "y");
  (void)b.relu(y, "unread");
  const auto flat = b.reshape(y, {6}, "flat");
  const auto loss =
      b.mean_squared_error(flat, b.input("target", {6}), graph::Reduction::kMean, "loss");
  b.set_loss(loss);
  b.add_output(loss);
  return testing::prepare_without_backend(graph::make_training_graph(b.finish(), {}).graph);
}

TEST(MakeProblem, RoundsBytesUpAndGivesEachTensorItsKind) {
  const GraphProblem p = make_problem(small_step());
  ASSERT_NO_THROW(schedule::validate(p.problem));
  EXPECT_EQ(find_tensor(p.problem, "h")->bytes, 64);  // 2 * 3 * 4 = 24
  EXPECT_EQ(find_tensor(p.problem, "h")->kind, TensorKind::kTemp);
  EXPECT_EQ(find_tensor(p.problem, "x")->kind, TensorKind::kInput);
  EXPECT_EQ(find_tensor(p.problem, "frozen")->kind, TensorKind::kResident);
  EXPECT_EQ(find_tensor(p.problem, "w")->kind, TensorKind::kInput);
  EXPECT_EQ(find_tensor(p.problem, "loss")->kind, TensorKind::kOutput);
}

TEST(MakeProblem, ReshapesVanishIntoWhatTheyView) {
  const graph::PreparedGraph prepared = small_step();
  const GraphProblem p = make_problem(prepared);
  EXPECT_EQ(find_tensor(p.problem, "flat"), nullptr);
  for (const schedule::Op& op : p.problem.ops) {
    if (op.name == "loss") {
      EXPECT_EQ(p.problem.tensors[op.inputs[0]].name, "y");
    }
  }
}

TEST(MakeProblem, LeavesOutWhatNobodyNeeds) {
  const GraphProblem p = make_problem(small_step());
  EXPECT_EQ(find_tensor(p.problem, "unread"), nullptr);
  for (const schedule::Op& op : p.problem.ops) EXPECT_NE(op.name, "unread");
}

TEST(MakeProblem, ListsPersistentValuesFirst) {
  const graph::PreparedGraph prepared = testing::prepare_training("resnet20", {.batch = 2});
  const GraphProblem p = make_problem(prepared);
  bool others = false;
  std::size_t persistent = 0, count = 0;
  for (std::size_t t = 0; t < p.problem.tensors.size(); ++t) {
    const graph::Value& value = prepared.graph.values[p.values[schedule::TensorId(t)]];
    if (graph::is_persistent(value.role)) {
      EXPECT_FALSE(others) << value.name;
      ++persistent;
    } else {
      others = true;
    }
  }
  for (const graph::Value& value : prepared.graph.values) count += graph::is_persistent(value.role);
  EXPECT_EQ(persistent, count);
}

TEST(MakeProblem, UpdatesInTheForwardPartDoNotCountAsBackward) {
  const GraphProblem p = make_problem(testing::prepare_training("resnet20", {.batch = 2}));
  bool backward = false;
  int turns = 0;
  for (const schedule::Op& op : p.problem.ops) {
    turns += op.backward != backward;
    backward = op.backward;
  }
  EXPECT_EQ(turns, 1);
}

std::string all_violations(const graph::PreparedGraph& prepared, const schedule::Schedule& s) {
  std::string text;
  for (const schedule::Violation& v : schedule::verify(prepared, s)) text += v.message + "\n";
  return text;
}

struct ModelCase {
  std::string name;
  models::ModelOptions options;
};
void PrintTo(const ModelCase& c, std::ostream* out) {
  *out << c.name;
}

class LowerModels : public ::testing::TestWithParam<ModelCase> {};

TEST_P(LowerModels, SchedulesOfAllStrategiesAndBudgetsAreVerified) {
  const graph::PreparedGraph prepared =
      testing::prepare_training(GetParam().name, GetParam().options);
  const GraphProblem p = make_problem(prepared);
  ASSERT_NO_THROW(schedule::validate(p.problem));
  for (const Strategy* strategy : all_strategies()) {
    SCOPED_TRACE(std::string(strategy->name()));
    Request request;
    request.problem = &p.problem;
    request.cache = make_plan_cache();
    request.search_moves = 5;
    const Bytes floor = strategy->floor(request);
    request.budget = Bytes{1} << 50;
    const Bytes widest = std::get<Plan>(strategy->plan(request)).arena;
    for (int i = 0; i <= 3; ++i) {
      request.budget = floor + (widest - floor) * i / 3;
      const Plan plan = std::get<Plan>(strategy->plan(request));
      const schedule::Schedule schedule = lower(prepared, p, plan);
      EXPECT_EQ(all_violations(prepared, schedule), "");
      EXPECT_EQ(schedule.arena_bytes, plan.arena);
      EXPECT_LE(schedule.arena_bytes, request.budget);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, LowerModels,
    ::testing::Values(
        ModelCase{"mlp", {.batch = 32}}, ModelCase{"resnet20", {.batch = 8}},
        ModelCase{"unet", {.batch = 1}}, ModelCase{"densenet", {.batch = 2}},
        ModelCase{"lstm",
                  {.batch = 2,
                   .hidden = 16,
                   .layers = 2,
                   .vocabulary = 30,
                   .seq_len = 40,
                   .chunk = 5,
                   .dropout = 0.1}},
        ModelCase{"gru", {.batch = 2, .hidden = 16, .vocabulary = 30, .seq_len = 23, .chunk = 5}}),
    [](const auto& test) { return test.param.name; });

// Training and evaluation list the same persistent values; a session runs both over one arena.
TEST(Lower, PersistentValuesLieAlikeInTrainingAndEvaluation) {
  models::ModelOptions options{.batch = 4};
  const graph::PreparedGraph training = testing::prepare_training("resnet20", options);
  options.training = false;
  const graph::PreparedGraph evaluation =
      testing::prepare_without_backend(models::make_model("resnet20", options).graph);
  const auto offsets = [](const graph::PreparedGraph& prepared) {
    const GraphProblem p = make_problem(prepared);
    Request request;
    request.problem = &p.problem;
    request.budget = Bytes{1} << 50;
    const Outcome outcome = find_strategy("keep_all").plan(request);
    const schedule::Schedule s = lower(prepared, p, std::get<Plan>(outcome));
    std::map<std::string, Bytes> result;
    for (const schedule::SlotId slot : s.entry) {
      const graph::Value& value = prepared.graph.values[s.slots[slot].value];
      if (value.role == graph::Role::kParameter || value.role == graph::Role::kState) {
        result[value.name] = s.slots[slot].offset;
      }
    }
    return result;
  };
  EXPECT_EQ(offsets(training), offsets(evaluation));
}

}  // namespace
}  // namespace reprise::planner
