// Whole training steps on the double: whatever the order in which streams run, the bits are the
// same and nobody touches bytes that another may still use. And what a step costs in calls, kernels
// and bytes moved.

#include <cstdio>
#include <gtest/gtest.h>

#include "api/session.h"
#include "graph/op.h"
#include "models/model.h"
#include "tests/cuda/double/control.h"

namespace reprise::api {
namespace {

using test::cuda::Policy;

constexpr Policy kPolicies[] = {Policy::kRandom, Policy::kStarve, Policy::kOthersFirst};

// Deterministic data for every input of the graph.
void fill_inputs(Session& session, const graph::Graph& graph, int step) {
  for (const graph::Value& value : graph.values) {
    if (value.role != graph::Role::kInput) continue;
    const auto count = static_cast<std::size_t>(graph::element_count(value.shape));
    const auto number = [&](std::size_t i) { return i * 37 + static_cast<std::size_t>(step) * 11; };
    if (value.dtype == graph::DType::kI32) {
      std::vector<std::int32_t> ids(count);
      for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<std::int32_t>(number(i) % 5);
      session.set_input(value.name, std::as_bytes(std::span(ids)));
    } else {
      std::vector<float> data(count);
      for (std::size_t i = 0; i < count; ++i)
        data[i] = static_cast<float>(number(i) % 23) / 11.0F - 1.0F;
      session.set_input(value.name, std::as_bytes(std::span(data)));
    }
  }
}

struct Outcome {
  std::uint64_t hash = 0;
  std::vector<float> losses;
  std::vector<test::cuda::Counts> counts;  // of each step with its inputs
};

graph::TrainingOptions sgd() {
  return {.optimizer = graph::SgdAttributes{.rate = {.base = 0.05}, .momentum = 0.9}};
}

std::unique_ptr<Session> session_of(const models::Model& model, Budget budget) {
  SessionOptions options;
  options.device = "cuda";
  options.plan.planner = "auto";
  options.plan.budget = budget;
  options.plan.search_moves = 5;
  auto created = Session::create(model, {}, sgd(), options);
  if (std::holds_alternative<planner::Infeasible>(created)) throw std::runtime_error("infeasible");
  return std::move(std::get<std::unique_ptr<Session>>(created));
}

Outcome train(const models::Model& model, Budget budget, int steps) {
  const auto session = session_of(model, budget);
  Outcome run;
  for (int step = 0; step < steps; ++step) {
    test::cuda::clear_counts();
    fill_inputs(*session, model.graph, step);
    run.losses.push_back(session->step());
    run.counts.push_back(test::cuda::counts());
  }
  run.hash = session->state_hash();
  return run;
}

// Half of what lies between the least and the most.
Budget middle_budget(const models::Model& model) {
  const PlanReport report = session_of(model, {})->report();
  return {.kind = Budget::Kind::kBytes, .bytes = (report.floor_bytes + report.keep_all_bytes) / 2};
}

void expect_same_bits_in_every_order(const models::Model& model, int seeds, int steps) {
  const Budget budget = middle_budget(model);
  test::cuda::set_policy(Policy::kEager);
  const Outcome eager = train(model, budget, steps);
  for (int seed = 0; seed < seeds; ++seed) {
    const Policy policy = kPolicies[seed % 3];
    test::cuda::set_policy(policy, static_cast<std::uint64_t>(seed));
    const test::cuda::CollectedFaults faults;
    const Outcome run = train(model, budget, steps);
    EXPECT_EQ(faults.all(), std::vector<std::string>{}) << "seed " << seed;
    EXPECT_EQ(run.hash, eager.hash) << to_string(policy) << " seed " << seed;
    EXPECT_EQ(run.losses, eager.losses) << to_string(policy) << " seed " << seed;
    if (testing::Test::HasFailure()) break;
  }
  test::cuda::set_policy(Policy::kRandom);
}

models::Model mlp() {
  return models::make_model(
      "mlp",
      {.batch = 2, .channels = 1, .height = 4, .width = 4, .classes = 5, .hidden = 8, .layers = 4});
}

models::Model lstm() {
  return models::make_model("lstm", {.batch = 2,
                                     .hidden = 8,
                                     .layers = 2,
                                     .vocabulary = 5,
                                     .seq_len = 12,
                                     .chunk = 3,
                                     .dropout = 0.25});
}

models::Model resnet() {
  return models::make_model("resnet20",
                            {.batch = 2, .channels = 1, .height = 8, .width = 8, .classes = 5});
}

TEST(TrainingOrder, TwoHundredSeedsGiveThePerceptronTheSameBits) {
  expect_same_bits_in_every_order(mlp(), 200, 3);
}

TEST(TrainingOrder, SeedsGiveTheLstmTheSameBits) {
  expect_same_bits_in_every_order(lstm(), 12, 3);
}

TEST(TrainingOrder, SeedsGiveTheResnetTheSameBits) {
  expect_same_bits_in_every_order(resnet(), 6, 2);
}

TEST(TrainingOrder, AStepMovesItsBatchToTheDeviceAndItsLossBack) {
  const models::Model model = resnet();
  std::size_t batch = 0;
  for (const graph::Value& value : model.graph.values)
    if (value.role == graph::Role::kInput) batch += 4 * graph::element_count(value.shape);
  const Outcome run = train(model, middle_budget(model), 4);
  for (const test::cuda::Counts& found : run.counts)
    std::printf("%zu calls, %zu kernels, %zu graph launches, %zu bytes in, %zu out\n",
                found.api_calls, found.kernels, found.graph_launches, found.host_to_device_bytes,
                found.device_to_host_bytes);
  const test::cuda::Counts& last = run.counts.back();
  EXPECT_EQ(last.calls.count("cudaMalloc"), 0U);
  EXPECT_GE(last.host_to_device_bytes, batch);
  EXPECT_LE(last.host_to_device_bytes, batch + 1024) << "and the numbers that change each step";
  EXPECT_EQ(last.device_to_host_bytes, sizeof(float));
}

}  // namespace
}  // namespace reprise::api
