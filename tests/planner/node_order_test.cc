// Where a problem lists what only the backward part needs.

#include "planner/node_order.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <string>
#include <vector>

#include "tests/planner/plan_checks.h"
#include "tests/planner/prepared_model.h"

namespace reprise::planner {
namespace {

using ::testing::ElementsAre;

models::ModelOptions sequence(std::int64_t steps, std::int64_t chunk) {
  models::ModelOptions options;
  options.batch = 2;
  options.hidden = 8;
  options.layers = 1;
  options.vocabulary = 16;
  options.seq_len = steps;
  options.chunk = chunk;
  options.stateful = false;
  return options;
}

std::vector<std::string> names(const Problem& problem, bool backward) {
  std::vector<std::string> result;
  for (const schedule::Op& op : problem.ops) {
    if (op.backward == backward) result.push_back(op.name);
  }
  return result;
}

// Of the backward part, only what the forward network makes.
std::vector<std::string> late_names(const Problem& problem) {
  std::vector<std::string> result = names(problem, true);
  std::erase_if(result, [](const std::string& name) { return !name.starts_with("chunk"); });
  return result;
}

std::size_t position(const Problem& problem, const std::string& name) {
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    if (problem.ops[schedule::OpId(i)].name == name) return i;
  }
  ADD_FAILURE() << "no op " << name;
  return 0;
}

// The last chunk's logits are what the backward part begins with; those of the others wait for
// their gradients, and each loss is added up as soon as it is there.
TEST(NodeOrder, MakesLogitsOfEarlierChunksRightBeforeTheirGradients) {
  const Problem problem = make_problem(testing::prepare_training("lstm", sequence(6, 2))).problem;
  EXPECT_THAT(
      names(problem, false),
      ElementsAre("layer1.h", "layer1.c",                                                  //
                  "chunk0.tokens", "chunk0.targets", "chunk0.embedding", "chunk0.layer1",  //
                  "chunk1.tokens", "chunk1.targets", "chunk1.embedding", "chunk1.layer1",  //
                  "chunk2.tokens", "chunk2.targets", "chunk2.embedding", "chunk2.layer1",
                  "chunk2.logits", "chunk2.loss"));
  EXPECT_THAT(late_names(problem), ElementsAre("chunk1.logits", "chunk1.loss", "chunk1.loss_sum",
                                               "chunk0.logits", "chunk0.loss", "chunk0.loss_sum"));
  EXPECT_EQ(position(problem, "chunk1.loss_sum") + 1,
            position(problem, "grad/chunk1.loss.dlogits"));
  EXPECT_LT(position(problem, "grad/chunk2.layer1.dx"), position(problem, "chunk1.logits"));
}

// Logits of a chunk take 128,000 bytes, its record some thousand: eight more chunks take less than
// the logits of one more, and nothing runs again.
TEST(NodeOrder, SoThatLogitsAreThereOneChunkAtATime) {
  const auto keep_all = [](std::int64_t steps) {
    models::ModelOptions options = sequence(steps, 4);
    options.vocabulary = 4'000;
    const Problem problem = make_problem(testing::prepare_training("lstm", options)).problem;
    Request request{.problem = &problem, .budget = Bytes{1} << 50};
    Plan plan = std::get<Plan>(find_strategy("keep_all").plan(request));
    EXPECT_EQ(plan.cost, cost_lower_bound(problem));
    return plan;
  };
  EXPECT_LT(keep_all(64).live_peak - keep_all(32).live_peak, 4 * 2 * 4'000 * 4);
}

TEST(NodeOrder, IsNodeOrderWhereTheFirstGradientNeedsAll) {
  for (const char* model : {"resnet20", "unet", "densenet", "mlp"}) {
    const graph::PreparedGraph prepared = testing::prepare_training(model, {.batch = 2});
    const GraphProblem problem = make_problem(prepared);
    EXPECT_TRUE(std::is_sorted(problem.nodes.begin(), problem.nodes.end())) << model;
  }
}

TEST(NodeOrder, IsNodeOrderWithoutABackwardPart) {
  models::ModelOptions options = sequence(6, 2);
  options.training = false;
  const graph::PreparedGraph prepared =
      testing::prepare_without_backend(models::make_model("lstm", options).graph);
  const GraphProblem problem = make_problem(prepared);
  EXPECT_TRUE(std::is_sorted(problem.nodes.begin(), problem.nodes.end()));
  EXPECT_TRUE(names(problem.problem, true).empty());
}

// Each micro-batch has a backward part, and its late nodes in there.
TEST(NodeOrder, KeepsLateNodesInTheirPass) {
  graph::TrainingOptions training;
  training.optimizer = graph::SgdAttributes{};
  training.micro_batches = 2;
  const GraphProblem problem = make_problem(testing::prepare_without_backend(
      graph::make_training_graph(models::make_model("lstm", sequence(6, 2)).graph, training)
          .graph));
  std::vector<std::string> parts;  // where the mark changes
  bool before = true;
  for (const schedule::Op& op : problem.problem.ops) {
    if (op.backward != before) parts.push_back(op.backward ? "backward" : "forward");
    before = op.backward;
  }
  EXPECT_THAT(parts, ElementsAre("forward", "backward", "forward", "backward"));
}

}  // namespace
}  // namespace reprise::planner
