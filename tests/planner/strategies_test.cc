// Cases that people hit in practice, on hand-made problems.

#include "gtest/gtest.h"

#include "base/error.h"
#include "planner/strategy.h"
#include "tests/planner/plan_checks.h"
#include "tests/planner/prepared_model.h"
#include "tests/schedule/problem_builder.h"

namespace reprise::planner {
namespace {

using schedule::Op;
using schedule::TensorId;
using schedule::TensorKind;
constexpr Bytes kMiB = base::kMiB;

// x -> f0 -> f1 ... -> loss, outputs of `bytes`; backward op i reads what f_i read and made.
Problem chain(int length, Bytes bytes) {
  Problem p;
  const auto tensor = [&](std::string name, Bytes size, TensorKind kind) {
    return p.tensors.push_back({std::move(name), size, kind});
  };
  std::vector<TensorId> x = {tensor("x0", bytes, TensorKind::kInput)};
  for (int i = 0; i < length; ++i) {
    x.push_back(tensor(fmt::format("x{}", i + 1), bytes, TensorKind::kTemp));
    Op op;
    op.name = fmt::format("f{}", i);
    op.inputs = {x[x.size() - 2]};
    op.outputs = {x.back()};
    op.cost = 10;
    p.ops.push_back(op);
  }
  TensorId g = tensor("dloss", bytes, TensorKind::kTemp);
  Op loss;
  loss.name = "loss";
  loss.inputs = {x.back()};
  loss.outputs = {g};
  loss.cost = 10;
  loss.backward = true;
  p.ops.push_back(loss);
  for (int i = length - 1; i >= 0; --i) {
    const TensorId dx = tensor(fmt::format("dx{}", i), bytes, TensorKind::kTemp);
    Op op;
    op.name = fmt::format("b{}", i);
    op.inputs = {g, x[static_cast<std::size_t>(i)]};
    op.outputs = {dx};
    op.cost = 20;
    op.backward = true;
    p.ops.push_back(op);
    g = dx;
  }
  p.tensors[g].kind = TensorKind::kOutput;
  return p;
}

Request request_for(const Problem& problem, Bytes budget = Bytes{1} << 50) {
  Request request;
  request.problem = &problem;
  request.budget = budget;
  request.search_moves = 50;
  request.cache = make_plan_cache();
  return request;
}

Plan plan_of(const Strategy& strategy, const Request& request) {
  const Outcome outcome = strategy.plan(request);
  if (const auto* none = std::get_if<Infeasible>(&outcome)) {
    throw std::runtime_error(fmt::format("infeasible, floor {}", none->floor));
  }
  return std::get<Plan>(outcome);
}

// 16 layers of 1 MiB and the batch. k segments keep k - 1 cuts, and while one segment is live its
// 16 / k activations; at most two gradients besides, and the batch.
TEST(Strategies, SegmentsSaveWhatTheyPromise) {
  const Problem p = chain(16, kMiB);
  for (int k : {1, 2, 4, 8, 16}) {
    SCOPED_TRACE(k);
    Request request = request_for(p);
    request.segments = k;
    const Plan plan = plan_of(find_strategy("segments"), request);
    EXPECT_LE(plan.arena, (k - 1 + 16 / k + 3) * kMiB);
    EXPECT_GE(plan.arena, (k - 1 + 16 / k) * kMiB);
  }
}

TEST(Strategies, RecomputationNeverTakesMoreThanKeepingAll) {
  const Problem p = chain(16, kMiB);
  const Bytes all = plan_of(find_strategy("keep_all"), request_for(p)).arena;
  for (const Strategy* strategy : all_strategies()) {
    const Plan plan = plan_of(*strategy, request_for(p));
    EXPECT_LE(plan.arena, all) << strategy->name();
  }
}

TEST(Strategies, BudgetsOneByteApartDecideBetweenKeepingAndRecomputing) {
  const Problem p = chain(4, 8 * kMiB);
  const Strategy& strategy = find_strategy("auto");
  Request request = request_for(p);
  const Bytes all = plan_of(find_strategy("keep_all"), request).arena;
  const Bytes floor = strategy.floor(request);
  request.budget = all;
  EXPECT_EQ(plan_of(strategy, request).recomputed, 0);
  request.budget = all - 1;
  EXPECT_GT(plan_of(strategy, request).recomputed, 0);
  EXPECT_LE(plan_of(strategy, request).arena, all - 1);
  request.budget = floor;
  EXPECT_EQ(plan_of(strategy, request).arena, floor);
  request.budget = floor - 1;
  const Outcome below = strategy.plan(request);
  EXPECT_EQ(std::get<Infeasible>(below).floor, floor);
}

TEST(Strategies, InfeasibleAnswersNameTheOpAndItsLargestTensors) {
  schedule::testing::ProblemBuilder b;
  b.tensor("x", 100, TensorKind::kInput).tensor("y", 300).tensor("z", 50, TensorKind::kOutput);
  b.op("wide", {"x"}, {"y"}).workspace = 1000;
  b.op("narrow", {"y"}, {"z"});
  Request request = request_for(b.problem(), 64);
  for (const Strategy* strategy : all_strategies()) {
    const Outcome outcome = strategy->plan(request);
    const Infeasible& answer = std::get<Infeasible>(outcome);
    EXPECT_EQ(answer.bound_by, "wide");
    ASSERT_EQ(answer.largest.size(), 3u);
    EXPECT_EQ(answer.largest[0].tensor, "workspace of wide");
    EXPECT_EQ(answer.largest[0].bytes, 1000);
    EXPECT_EQ(answer.largest[1].tensor, "y");
    EXPECT_EQ(answer.largest[2].tensor, "x");
    // 1000 + 300 + 100, each offset a multiple of 64.
    EXPECT_GE(answer.floor, 1400);
    EXPECT_LE(answer.floor, 1400 + 2 * 64);
  }
}

TEST(Strategies, BudgetsThatAreNotPositiveAreRefused) {
  const Problem p = chain(2, 64);
  for (Bytes budget : {0, -1}) {
    EXPECT_THROW((void)find_strategy("auto").plan(request_for(p, budget)), base::Error);
  }
}

TEST(Strategies, UnknownNamesAreAnsweredWithTheKnownOnes) {
  try {
    (void)find_strategy("magic");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find("keep_all"), std::string::npos);
  }
}

// 12 blocks with a four times wider inner layer, 20 budgets from floor to keep_all.
TEST(Strategies, MoreBudgetNeverCostsMore) {
  models::ModelOptions options{.batch = 8, .hidden = 64, .layers = 12};
  const GraphProblem p = make_problem(testing::prepare_training("mlp", options));
  for (const Strategy* strategy : all_strategies()) {
    Request request = request_for(p.problem);
    const Bytes floor = strategy->floor(request);
    const Bytes widest = plan_of(*strategy, request).arena;
    std::int64_t last = -1;
    for (int i = 0; i <= 20; ++i) {
      request.budget = floor + (widest - floor) * i / 20;
      const Plan plan = plan_of(*strategy, request);
      EXPECT_LE(plan.arena, request.budget);
      if (last >= 0) {
        EXPECT_LE(plan.cost, last) << strategy->name() << " at " << request.budget;
      }
      last = plan.cost;
    }
  }
}

TEST(Strategies, OneOpHasNothingToTradeOff) {
  schedule::testing::ProblemBuilder b;
  b.tensor("x", 64, TensorKind::kInput).tensor("y", 64, TensorKind::kOutput);
  b.op("only", {"x"}, {"y"});
  for (const Strategy* strategy : all_strategies()) {
    EXPECT_EQ(plan_of(*strategy, request_for(b.problem())).order, b.order({"only"}));
  }
}

TEST(Strategies, AnEmptyProblemPlansToNothing) {
  const Problem empty;
  schedule::testing::ProblemBuilder parameter;  // loss = parameter: nothing to run
  parameter.tensor("w", 128, TensorKind::kResident);
  for (const Strategy* strategy : all_strategies()) {
    EXPECT_TRUE(plan_of(*strategy, request_for(empty)).order.empty());
    const Plan plan = plan_of(*strategy, request_for(parameter.problem()));
    EXPECT_TRUE(plan.order.empty());
    EXPECT_EQ(plan.arena, 128);
  }
}

TEST(Strategies, PinnedTensorsAreNeverMadeAgain) {
  Problem p = chain(6, 640);
  for (Op& op : p.ops) op.recomputable = false;
  for (const Strategy* strategy : all_strategies()) {
    const Plan plan = plan_of(*strategy, request_for(p));
    EXPECT_EQ(plan.recomputed, 0);
    EXPECT_EQ(strategy->floor(request_for(p)), plan.arena);
  }
}

// split makes three tensors and may run only once; the backward op reads one of them.
TEST(Strategies, OfAPinnedOpOnlyWhatIsReadLaterStays) {
  schedule::testing::ProblemBuilder b;
  b.tensor("x", 64, TensorKind::kInput).tensor("a", 640).tensor("b", 640).tensor("c", 64);
  b.tensor("h", 64).tensor("g", 6400).tensor("out", 64, TensorKind::kOutput);
  b.op("split", {"x"}, {"a", "b", "c"}).recomputable = false;
  b.op("join", {"a", "b"}, {"h"});
  b.op("loss", {"h"}, {"g"}).backward = true;
  b.op("back", {"g", "c"}, {"out"}).backward = true;
  for (const Strategy* strategy : all_strategies()) {
    const Plan plan = plan_of(*strategy, request_for(b.problem()));
    // At "back": g, c and out; a, b and h are gone.
    EXPECT_EQ(plan.live_peak, 6400 + 64 + 64) << strategy->name();
  }
}

TEST(Strategies, SameRequestSamePlan) {
  const GraphProblem p =
      make_problem(testing::prepare_training("resnet20", {.batch = 2, .height = 8, .width = 8}));
  for (const Strategy* strategy : all_strategies()) {
    Request first = request_for(p.problem), second = request_for(p.problem);
    first.search_moves = second.search_moves = 3;
    const Bytes floor = strategy->floor(first);
    first.budget = second.budget = floor + floor / 4;
    const Plan a = plan_of(*strategy, first), b = plan_of(*strategy, second);
    EXPECT_EQ(a.order, b.order) << strategy->name();
    EXPECT_EQ(a.packing.offsets, b.packing.offsets) << strategy->name();
  }
}

// Long skips leave no cut that a single tensor crosses.
TEST(Strategies, SkipsAcrossTheWholeForwardPartAreHandled) {
  for (const char* model : {"unet", "densenet"}) {
    const GraphProblem p = make_problem(testing::prepare_training(model, {.batch = 1}));
    Request request = request_for(p.problem);
    request.search_moves = 3;
    const Bytes all = plan_of(find_strategy("keep_all"), request).arena;
    for (const Strategy* strategy : all_strategies()) {
      const Bytes floor = strategy->floor(request);
      EXPECT_LE(floor, all) << model << " by " << strategy->name();
      request.budget = floor;
      EXPECT_FALSE(testing::check_plan(p.problem, plan_of(*strategy, request), floor));
      request.budget = Bytes{1} << 50;
    }
    EXPECT_LT(find_strategy("auto").floor(request), all * 8 / 10) << model;
  }
}

Bytes bytes_from_outside(const Problem& problem) {
  Bytes bytes = 0;
  for (const schedule::Tensor& t : problem.tensors) {
    if (t.kind == TensorKind::kInput || t.kind == TensorKind::kResident) bytes += t.bytes;
  }
  return bytes;
}

TEST(Strategies, AQuarterOfTheActivationsIsEnoughForAResidualNet) {
  const GraphProblem p = make_problem(testing::prepare_training("resnet20", {.batch = 64}));
  const Bytes outside = bytes_from_outside(p.problem);
  Request request = request_for(p.problem);
  request.search_moves = 10;
  const Bytes all = plan_of(find_strategy("keep_all"), request).arena;
  EXPECT_LE(find_strategy("auto").floor(request), outside + (all - outside) / 4);
}

// A thousand ops of a residual net, ten thousand of an unrolled recurrent one: no clock decides, so
// the time is whatever the effort bounds make it; the test's own time limit is the check.
TEST(Strategies, ThousandsOfOpsArePlanned) {
  Request request;
  const GraphProblem deep =
      make_problem(testing::prepare_training("resnet110", {.batch = 1, .height = 8, .width = 8}));
  const GraphProblem chunks = make_problem(testing::prepare_training(
      "lstm",
      {.batch = 1, .hidden = 8, .layers = 1, .vocabulary = 10, .seq_len = 1600, .chunk = 1}));
  EXPECT_GT(deep.problem.ops.size(), 1000u);
  EXPECT_GT(chunks.problem.ops.size(), 10'000u);
  for (const GraphProblem* p : {&deep, &chunks}) {
    request = request_for(p->problem);
    request.search_moves = 1;
    const Bytes all = plan_of(find_strategy("keep_all"), request).arena;
    const Bytes outside = bytes_from_outside(p->problem);
    EXPECT_LT(find_strategy("auto").floor(request), outside + (all - outside) / 4);
  }
}

// w is updated as soon as its gradient is there; but where y is dropped over `wide`, f1 runs again
// afterwards and reads w: then the update has to wait.
TEST(Strategies, UpdatesWaitForRecomputationsThatReadTheOldVersion) {
  schedule::testing::ProblemBuilder b;
  b.tensor("w", 64, TensorKind::kInput).tensor("x", 64, TensorKind::kInput);
  b.tensor("y", 64000).tensor("g", 64).tensor("dw", 64).tensor("w'", 64, TensorKind::kOutput);
  b.tensor("big", 64000).tensor("s", 64).tensor("out", 64, TensorKind::kOutput);
  b.op("f1", {"x", "w"}, {"y"});
  b.op("f2", {"y"}, {"g"});
  b.op("grad_w", {"g"}, {"dw"}).backward = true;
  Op& update = b.op("update", {"w", "dw"}, {"w'"});
  update.backward = true;
  update.recomputable = false;
  update.inplace = {{0, 0, true}};
  b.op("wide", {"g"}, {"big"}).backward = true;
  b.op("shrink", {"big"}, {"s"}).backward = true;
  b.op("last", {"y", "s"}, {"out"}).backward = true;
  for (const char* name : {"dag", "auto"}) {
    const Strategy& strategy = find_strategy(name);
    Request request = request_for(b.problem());
    EXPECT_GE(plan_of(find_strategy("keep_all"), request).arena, 2 * 64000);
    request.budget = strategy.floor(request);
    EXPECT_LT(request.budget, 2 * 64000);
    const Plan plan = plan_of(strategy, request);
    const auto first = std::find(plan.order.begin(), plan.order.end(), b.op_id("f1"));
    const auto again = std::find(first + 1, plan.order.end(), b.op_id("f1"));
    const auto updated = std::find(plan.order.begin(), plan.order.end(), b.op_id("update"));
    ASSERT_NE(again, plan.order.end());
    EXPECT_LT(again, updated);
  }
}

}  // namespace
}  // namespace reprise::planner
