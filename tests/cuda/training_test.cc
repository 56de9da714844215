// Whole training steps on the CUDA backend, linked with the double: the same networks, plans and
// budgets as on the CPU, in orders of the streams that a GPU might choose.

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "graph/mixed_precision.h"
#include "tests/api/training_case.h"
#include "tests/cuda/double/control.h"
#include "tests/kernels/agreement.h"

namespace reprise::api {
namespace {

using test::cuda::Policy;

struct Network {
  std::string name;
  models::ModelOptions options;
  graph::Optimizer optimizer;
  friend void PrintTo(const Network& n, std::ostream* out) { *out << n.name; }
};

constexpr std::size_t kIds = 5;  // classes, and words

graph::Optimizer sgd() {
  return graph::SgdAttributes{.rate = {.base = 0.05}, .momentum = 0.9, .weight_decay = 1e-3};
}
graph::Optimizer adam() {
  return graph::AdamAttributes{.rate = {.base = 0.01}};
}

std::vector<Network> networks() {
  const models::ModelOptions image{
      .batch = 2, .channels = 1, .height = 8, .width = 8, .classes = kIds};
  models::ModelOptions text{.batch = 2,
                            .hidden = 8,
                            .layers = 2,
                            .vocabulary = kIds,
                            .seq_len = 12,
                            .chunk = 3,
                            .dropout = 0.25};
  return {{"resnet20", image, sgd()},
          {"mlp", image, adam()},
          {"unet", image, sgd()},
          {"lstm", text, adam()},
          {"gru", text, sgd()}};
}

struct Trained {
  std::uint64_t hash = 0;
  std::vector<float> losses;
  PlanReport report;
  Bytes measured = 0;
};

class CudaTraining : public testing::TestWithParam<Network> {
 protected:
  void SetUp() override { test::cuda::reset(); }

  CudaTraining() : model_(models::make_model(GetParam().name, GetParam().options)) {}

  std::unique_ptr<Session> session(const SessionOptions& options) const {
    return make_session(model_, options, {.optimizer = GetParam().optimizer});
  }
  Trained train(const SessionOptions& options, std::size_t steps = 3) const {
    const auto trained = session(options);
    Trained result;
    for (std::size_t step = 0; step < steps; ++step) {
      feed(*trained, model_.graph, kIds, step);
      result.losses.push_back(trained->step());
    }
    result.hash = trained->state_hash();
    result.report = trained->report();
    result.measured = trained->peak_bytes_measured();
    return result;
  }

  models::Model model_;
};

TEST_P(CudaTraining, FirstStepIsTheCpusToOneInAHundredThousand) {
  const auto gpu = session(on("cuda", "keep_all"));
  const auto truth = session(on("reference", "keep_all"));
  for (Session* each : {gpu.get(), truth.get()}) feed(*each, model_.graph, kIds, 0);
  const float loss = truth->step();
  EXPECT_NEAR(gpu->step(), loss, 1e-5 * std::abs(loss));
  // Adam divides by the root of squares: where a gradient is nearly zero its sign decides, so that
  // the moments are what can be compared.
  for (const Session::Variable& variable : truth->variables()) {
    const bool divided = std::holds_alternative<graph::AdamAttributes>(GetParam().optimizer) &&
                         variable.role == graph::Role::kParameter;
    if (divided) continue;
    EXPECT_LE(kernels::relative_difference(numbers(gpu->read(variable.name)),
                                           numbers(truth->read(variable.name))),
              1e-5)
        << variable.name;
  }
}

TEST_P(CudaTraining, EveryPlanGivesTheSameBitsAtThePlannedPeak) {
  const Trained all = train(on("cuda", "keep_all"));
  EXPECT_EQ(all.measured, all.report.peak_bytes);
  SessionOptions at_floor = on("cuda", "auto", {.kind = Budget::Kind::kFloor});
  const Bytes floor = train(at_floor, 1).report.peak_bytes;
  int plans = 0;
  for (const planner::Strategy* strategy : planner::all_strategies()) {
    for (const Bytes budget : {all.measured, floor + (all.measured - floor) / 2, floor}) {
      const std::string name(strategy->name());
      SCOPED_TRACE(name + " at " + std::to_string(budget));
      auto created = Session::create(model_, {}, {.optimizer = GetParam().optimizer},
                                     on("cuda", name, bytes_budget(budget)));
      // The floor of another strategy may lie above that of auto.
      if (name != "auto" && std::holds_alternative<planner::Infeasible>(created)) continue;
      const Trained tried = train(on("cuda", name, bytes_budget(budget)));
      EXPECT_EQ(tried.hash, all.hash);
      EXPECT_EQ(tried.losses, all.losses);
      EXPECT_EQ(tried.measured, tried.report.peak_bytes);
      EXPECT_LE(tried.measured, budget);
      ++plans;
    }
  }
  EXPECT_GE(plans, 6);
}

TEST_P(CudaTraining, EveryInstructionWritesWhatItSaysAndNothingElse) {
  SessionOptions checked = on("cuda", "auto", {.kind = Budget::Kind::kFloor});
  checked.debug = true;
  EXPECT_EQ(train(checked).hash, train(on("cuda", "keep_all")).hash);
}

TEST_P(CudaTraining, RecordedStepsGiveTheBitsOfPlainOnes) {
  SessionOptions plain = on("cuda", "auto", {.kind = Budget::Kind::kFloor});
  plain.record_steps = false;
  const Trained queued = train(plain, 5);
  const auto before = test::cuda::counts().graph_launches;
  SessionOptions recorded = plain;
  recorded.record_steps = true;
  const Trained played = train(recorded, 5);  // with other data in each step
  EXPECT_EQ(played.hash, queued.hash);
  EXPECT_EQ(played.losses, queued.losses);
  // The first step runs plainly; the rest is one launch each.
  EXPECT_EQ(test::cuda::counts().graph_launches - before, 4u);
}

INSTANTIATE_TEST_SUITE_P(Networks, CudaTraining, testing::ValuesIn(networks()),
                         [](const auto& param) { return param.param.name; });

// Steps as the trainer takes them: the next batch is set while the device works.
std::uint64_t train_ahead(const models::Model& model, const SessionOptions& options,
                          std::size_t steps) {
  const auto session = make_session(model, options, {.optimizer = sgd()});
  EXPECT_TRUE(session->works_ahead());
  feed(*session, model.graph, kIds, 0);
  for (std::size_t step = 0; step < steps; ++step) {
    session->start_step();
    if (step + 1 < steps) feed(*session, model.graph, kIds, step + 1);
    (void)session->finish_step();
  }
  return session->state_hash();
}

models::Model small_resnet() {
  return models::make_model("resnet20",
                            {.batch = 2, .channels = 1, .height = 8, .width = 8, .classes = kIds});
}

// 200 seeds: what a step computes does not depend on the order in which streams get on, with the
// arena's bytes used over and over. A pair of accesses that nothing orders ends the process.
TEST(CudaOrders, TwoHundredSeedsGiveTheSameBits) {
  const models::Model model = small_resnet();
  std::vector<std::uint64_t> hashes;
  for (int seed = 0; seed < 200; ++seed) {
    test::cuda::reset();
    const Policy policies[] = {Policy::kRandom, Policy::kStarve, Policy::kOthersFirst};
    test::cuda::set_policy(policies[seed % 3], static_cast<std::uint64_t>(seed));
    SessionOptions options = on("cuda", "segments");
    options.record_steps = seed % 2 == 0;
    hashes.push_back(train_ahead(model, options, 4));
    ASSERT_EQ(hashes.back(), hashes.front()) << "seed " << seed;
  }
  test::cuda::reset();
}

// Bugs planted into the backend: one wait between streams after the other is left out.
TEST(CudaOrders, AMissingWaitIsReportedOrChangesNothing) {
  const models::Model model = small_resnet();
  test::cuda::reset();
  const std::uint64_t right = train_ahead(model, on("cuda", "segments"), 4);
  const std::size_t waits = test::cuda::counts().calls.at("cudaStreamWaitEvent");
  ASSERT_GE(waits, 6u);  // two inputs: each copy behind a mark, each step behind the copies
  std::size_t reported = 0;
  for (std::size_t left_out = 1; left_out <= waits; ++left_out) {
    test::cuda::reset();
    const test::cuda::CollectedFaults faults;
    test::cuda::fail_call("cudaStreamWaitEvent", left_out, 0);
    const std::uint64_t hash = train_ahead(model, on("cuda", "segments"), 4);
    if (faults.all().empty()) {
      EXPECT_EQ(hash, right) << "wait " << left_out;  // another wait implies it
    } else {
      ++reported;
    }
  }
  // What no other wait implies: the first step behind its batch, and three times the copy of the
  // images behind the last that reads them. The labels' copies come behind those of the images, and
  // the host, reading a loss, waits for the copies itself.
  EXPECT_EQ(reported, 4u) << "of " << waits;
  test::cuda::reset();
}

// resnet20 has 65 parameters, and a table room for 48: two launches, and up to two more where a
// gradient lies in bytes of the batch's two inputs, whose next copies come behind its update.
TEST(CudaCounts, UpdatesAtTheEndOfAStepAreAFewLaunches) {
  test::cuda::reset();
  const models::Model model = small_resnet();
  SessionOptions options = on("cuda", "keep_all");
  options.record_steps = false;
  const auto kernels_of_a_step = [&](bool last) {
    const auto session = make_session(model, options, {.optimizer = sgd(), .updates_last = last});
    feed(*session, model.graph, kIds, 0);
    (void)session->step();
    test::cuda::clear_counts();
    feed(*session, model.graph, kIds, 1);
    (void)session->step();
    return test::cuda::counts().kernels;
  };
  // keep_all runs the nodes in the order in which autodiff made them.
  const std::size_t of_others = 344 - 65;  // as counted when each update was a launch of its own
  EXPECT_GE(kernels_of_a_step(true), of_others + 2);
  EXPECT_LE(kernels_of_a_step(true), of_others + 4);
  EXPECT_LT(kernels_of_a_step(false), of_others + 65);
}

// Both in f32 and in bf16, where images are f32 as they were.
void expect_counts_of_a_step(const models::Model& model, const char* precision) {
  SCOPED_TRACE(precision);
  test::cuda::reset();
  for (const bool recorded : {false, true}) {
    SessionOptions options = on("cuda", "keep_all");
    options.record_steps = recorded;
    const auto session = make_session(model, options, {.optimizer = sgd()});
    for (std::size_t step = 0; step < 3; ++step) {  // libraries warm, the step recorded
      feed(*session, model.graph, kIds, step);
      (void)session->step();
    }
    test::cuda::clear_counts();
    feed(*session, model.graph, kIds, 3);
    (void)session->step();
    const test::cuda::Counts counts = test::cuda::counts();
    std::size_t batch = 0;
    for (const graph::Value& value : model.graph.values) {
      if (value.role == graph::Role::kInput)
        batch += static_cast<std::size_t>(graph::element_count(value.shape)) * sizeof(float);
    }
    // Beside the batch: seed, step, and the learning rate.
    EXPECT_GE(counts.host_to_device_bytes, batch + 24);
    EXPECT_LE(counts.host_to_device_bytes, batch + 64);
    EXPECT_EQ(counts.device_to_host_bytes, sizeof(float));
    EXPECT_EQ(counts.device_to_device_bytes, 0u);
    EXPECT_EQ(counts.calls.count("cudaMalloc"), 0u);
    EXPECT_EQ(counts.graph_launches, recorded ? 1u : 0u);
    const auto& instructions = session->planned().schedule.instructions;
    const auto updates =
        std::count_if(instructions.begin(), instructions.end(), [&](const auto& i) {
          return session->planned().prepared.graph.nodes[i.node].op == graph::OpKind::kSgd;
        });
    // At least one for each instruction that is no update; these share theirs with neighbours.
    const auto launches = instructions.size() - static_cast<std::size_t>(updates);
    EXPECT_GE(counts.kernels, launches);
    if (recorded) {
      EXPECT_LE(counts.api_calls, 40u);
    } else {
      EXPECT_GE(counts.api_calls, launches);
    }
    fmt::print("{} {}: {} API calls, {} kernels, {} instructions, {} bytes in, {} out\n", precision,
               recorded ? "recorded" : "plain", counts.api_calls, counts.kernels,
               instructions.size(), counts.host_to_device_bytes, counts.device_to_host_bytes);
  }
}

TEST(CudaCounts, AStepMovesTheBatchAndTheLossAndNothingElse) {
  models::Model model = small_resnet();
  expect_counts_of_a_step(model, "f32");
  model.graph = graph::mixed_precision(model.graph);
  expect_counts_of_a_step(model, "bf16");
}

// What the host must refuse, since a kernel cannot.
TEST(CudaInputs, IdsOutOfRangeAreRefusedWhenTheyAreSetAndNothingIsLost) {
  test::cuda::reset();
  const models::Model model = models::make_model(
      "mlp", {.batch = 2, .channels = 1, .height = 8, .width = 8, .classes = kIds});
  const auto session = make_session(model, on("cuda", "keep_all"), {.optimizer = sgd()});
  feed(*session, model.graph, kIds, 0);
  const std::uint64_t before = session->state_hash();
  const std::string refusal = error_of([&] {
    session->set_input("labels", bytes_of(std::vector<std::int32_t>{1, 5}));
  });
  EXPECT_NE(refusal.find("label 5 at position 1 is outside of [0, 5)"), std::string::npos)
      << refusal;
  EXPECT_EQ(session->state_hash(), before);
  session->set_input("labels", bytes_of(std::vector<std::int32_t>{1, -100}));  // the ignored one
  EXPECT_TRUE(std::isfinite(session->step()));
}

TEST(CudaMemory, AGpuWithoutRoomSaysWhatIsFree) {
  test::cuda::reset();
  test::cuda::set_machine({.devices = 1, .memory_bytes = std::size_t{600} << 20});
  const models::Model model = models::make_model("mlp", {.batch = 2,
                                                         .channels = 3,
                                                         .height = 64,
                                                         .width = 64,
                                                         .classes = kIds,
                                                         .hidden = 4096,
                                                         .layers = 3});
  const std::string refusal =
      error_of([&] { (void)make_session(model, on("cuda", "keep_all"), {.optimizer = sgd()}); });
  EXPECT_NE(refusal.find("cannot reserve"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("are free"), std::string::npos) << refusal;
  test::cuda::reset();
}

}  // namespace
}  // namespace reprise::api
