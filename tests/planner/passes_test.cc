// Steps of several micro-batches: planned pass by pass, each as well as a step of its own.

#include "planner/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/plan_checks.h"
#include "tests/planner/prepared_model.h"

namespace reprise::planner {
namespace {

using schedule::Op;
using schedule::OpId;
using schedule::TensorKind;

// Two passes over a weight w of 8: f makes y of 4 from an input x of 2, b makes the gradient g of 8
// from y and w, the second one adds to it in place, u makes the next w.
Problem two_passes() {
  Problem p;
  p.name = "two";
  const auto tensor = [&](const char* name, Bytes bytes, TensorKind kind) {
    return p.tensors.push_back({name, bytes, kind});
  };
  const auto w = tensor("w", 8, TensorKind::kInput);
  const auto x0 = tensor("x0", 2, TensorKind::kInput);
  const auto x1 = tensor("x1", 2, TensorKind::kInput);
  const auto y0 = tensor("y0", 4, TensorKind::kTemp);
  const auto g0 = tensor("g0", 8, TensorKind::kTemp);
  const auto y1 = tensor("y1", 4, TensorKind::kTemp);
  const auto g1 = tensor("g1", 8, TensorKind::kTemp);
  const auto next = tensor("w'", 8, TensorKind::kOutput);
  p.ops.push_back(Op{.name = "f0", .inputs = {x0, w}, .outputs = {y0}, .cost = 1, .inplace = {}});
  p.ops.push_back(Op{.name = "b0",
                     .inputs = {y0, w},
                     .outputs = {g0},
                     .cost = 1,
                     .backward = true,
                     .inplace = {}});
  p.ops.push_back(Op{.name = "f1", .inputs = {x1, w}, .outputs = {y1}, .cost = 1, .inplace = {}});
  p.ops.push_back(Op{.name = "b1",
                     .inputs = {y1, w, g0},
                     .outputs = {g1},
                     .cost = 1,
                     .backward = true,
                     .inplace = {{2, 0, true}}});
  p.ops.push_back(Op{.name = "u",
                     .inputs = {w, g1},
                     .outputs = {next},
                     .cost = 1,
                     .recomputable = false,
                     .backward = true,
                     .inplace = {{0, 0, true}}});
  return p;
}

// x1 waits beside the first pass, which must leave w and g0; the second one finds g0 and takes all.
TEST(Passes, EachIsAProblemOfItsOwn) {
  const Problem problem = two_passes();
  const std::vector<Pass> passes = split_into_passes(problem);
  ASSERT_EQ(passes.size(), 2U);
  const auto kinds = [](const Pass& pass) {
    std::vector<TensorKind> all;
    for (const schedule::Tensor& tensor : pass.problem.tensors) all.push_back(tensor.kind);
    return all;
  };
  EXPECT_EQ(passes[0].ops, (std::vector<OpId>{OpId(0), OpId(1), OpId()}));
  EXPECT_THAT(kinds(passes[0]),  // x0 w y0 g0, and what reads g0 later
              ::testing::ElementsAre(TensorKind::kInput, TensorKind::kResident, TensorKind::kTemp,
                                     TensorKind::kTemp, TensorKind::kOutput));
  EXPECT_EQ(passes[0].elsewhere, 2);
  EXPECT_EQ(passes[1].ops, (std::vector<OpId>{OpId(2), OpId(3), OpId(4)}));
  EXPECT_THAT(kinds(passes[1]),  // x1 w y1 g0 g1 w'
              ::testing::ElementsAre(TensorKind::kInput, TensorKind::kInput, TensorKind::kTemp,
                                     TensorKind::kInput, TensorKind::kTemp, TensorKind::kOutput));
  EXPECT_EQ(passes[1].elsewhere, 0);
}

TEST(Passes, AStepWithOneBackwardPartIsNotSplit) {
  Problem problem = two_passes();
  for (schedule::Op& op : problem.ops) op.backward = op.name != "f0" && op.name != "f1";
  problem.ops[OpId(2)].backward = true;
  EXPECT_TRUE(split_into_passes(problem).empty());
}

graph::PreparedGraph prepare(const std::string& model, models::ModelOptions options,
                             std::int64_t micro_batches) {
  options.batch /= micro_batches;
  graph::TrainingOptions training{.optimizer = graph::SgdAttributes{.momentum = 0.9}};
  training.micro_batches = micro_batches;
  return testing::prepare_without_backend(
      graph::make_training_graph(models::make_model(model, options).graph, training).graph);
}

Request request_for(const Problem& problem) {
  Request request;
  request.problem = &problem;
  request.cache = make_plan_cache();
  request.search_moves = 2;
  return request;
}

TEST(Passes, MiddleMicroBatchesAreOneProblem) {
  const GraphProblem made = make_problem(
      prepare("resnet20", {.batch = 8, .channels = 3, .height = 8, .width = 8, .classes = 10}, 4));
  const std::vector<Pass> passes = split_into_passes(made.problem);
  ASSERT_EQ(passes.size(), 4U);
  EXPECT_EQ(passes[1].problem, passes[2].problem);
  EXPECT_NE(passes[0].problem, passes[1].problem);  // it begins the sums of gradients
}

// Activations of 32 KiB a layer outweigh 13 KiB of weights, and those of a micro-batch are a
// quarter of the batch's: with every strategy the floor falls, and every plan within it holds.
TEST(Passes, EveryStrategyPlansThemAndNeedsLess) {
  const models::ModelOptions options{.batch = 512,
                                     .channels = 1,
                                     .height = 2,
                                     .width = 2,
                                     .classes = 4,
                                     .hidden = 16,
                                     .layers = 12};
  const GraphProblem whole = make_problem(prepare("mlp", options, 1));
  const GraphProblem cut = make_problem(prepare("mlp", options, 4));
  for (const Strategy* strategy : all_strategies()) {
    Request of_whole = request_for(whole.problem);
    Request of_cut = request_for(cut.problem);
    const Bytes floor = strategy->floor(of_cut);
    EXPECT_LT(floor, strategy->floor(of_whole)) << strategy->name();
    of_cut.budget = floor;
    const Plan plan = std::get<Plan>(strategy->plan(of_cut));
    EXPECT_EQ(testing::check_plan(cut.problem, plan, floor), std::nullopt) << strategy->name();
  }
}

// A pass is a step: what auto adds in time at half of the activations is about what it adds to a
// step of one micro-batch.
TEST(Passes, AutoLosesNoMoreThanOnOneMicroBatch) {
  const models::ModelOptions one{
      .batch = 16, .channels = 3, .height = 8, .width = 8, .classes = 10};
  models::ModelOptions four = one;
  four.batch *= 4;
  const auto overhead_at_half = [](const graph::PreparedGraph& prepared) {
    const GraphProblem made = make_problem(prepared);
    Request request = request_for(made.problem);
    const auto all = std::get<Plan>(
        find_strategy("keep_all")
            .plan({.problem = &made.problem, .budget = std::int64_t{1} << 40, .cache = nullptr}));
    const Bytes floor = find_strategy("auto").floor(request);
    request.budget = floor + (all.arena - floor) / 2;
    const auto plan = std::get<Plan>(find_strategy("auto").plan(request));
    return static_cast<double>(plan.cost) / static_cast<double>(all.cost) - 1.0;
  };
  EXPECT_LT(overhead_at_half(prepare("resnet20", four, 4)),
            overhead_at_half(prepare("resnet20", one, 1)) + 0.02);
}

}  // namespace
}  // namespace reprise::planner
