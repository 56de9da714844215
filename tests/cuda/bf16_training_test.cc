// Whole training steps in bf16 on the CUDA backend, linked with the double.

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

constexpr std::size_t kIds = 5;  // classes, and words

struct Network {
  std::string name;
  models::ModelOptions options;
  friend void PrintTo(const Network& n, std::ostream* out) { *out << n.name; }
};

std::vector<Network> networks() {
  const models::ModelOptions image{
      .batch = 4, .channels = 1, .height = 8, .width = 8, .classes = kIds};
  const models::ModelOptions text{.batch = 2,
                                  .hidden = 8,
                                  .layers = 2,
                                  .vocabulary = kIds,
                                  .seq_len = 12,
                                  .chunk = 3,
                                  .dropout = 0.25};
  return {{"resnet20", image}, {"mlp", image}, {"lstm", text}};
}

graph::Optimizer sgd() {
  return graph::SgdAttributes{.rate = {.base = 0.05}, .momentum = 0.9, .weight_decay = 1e-3};
}

struct Trained {
  std::uint64_t hash = 0;
  std::vector<float> losses;
  Bytes planned = 0, measured = 0;
};

class CudaBF16Training : public testing::TestWithParam<Network> {
 protected:
  CudaBF16Training() : f32_(models::make_model(GetParam().name, GetParam().options)), model_(f32_) {
    model_.graph = graph::mixed_precision(f32_.graph);
  }
  void SetUp() override { test::cuda::reset(); }
  void TearDown() override { test::cuda::reset(); }

  static std::unique_ptr<Session> session(const models::Model& model,
                                          const SessionOptions& options) {
    return make_session(model, options, {.optimizer = sgd()});
  }
  Trained train(Session& trained, std::size_t steps = 2) const {
    Trained result;
    for (std::size_t step = 0; step < steps; ++step) {
      feed(trained, model_.graph, kIds, step);
      result.losses.push_back(trained.step());
    }
    result.hash = trained.state_hash();
    result.planned = trained.report().peak_bytes;
    result.measured = trained.peak_bytes_measured();
    return result;
  }
  Trained train(const SessionOptions& options, std::size_t steps = 2) const {
    return train(*session(model_, options), steps);
  }

  models::Model f32_, model_;
};

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float x : values) sum += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(sum);
}

// The same graph on the reference, which rounds where this rounds. What differs is where a result
// lies near the middle of two bf16 numbers; each such flip is 2^-8 of a number, and goes through
// some tens of layers that add noise of random sign. The change of each parameter is compared as a
// vector: an element that nearly cancels out says nothing.
TEST_P(CudaBF16Training, FirstStepIsTheReferencesButForRoundingTheOtherWay) {
  const auto gpu = session(model_, on("cuda", "keep_all"));
  const auto truth = session(model_, on("reference", "keep_all"));
  const auto wide = session(f32_, on("reference", "keep_all"));
  std::vector<std::vector<float>> before;
  for (const Session::Variable& variable : truth->variables())
    before.push_back(numbers(truth->read(variable.name)));
  for (Session* each : {gpu.get(), truth.get(), wide.get()}) feed(*each, f32_.graph, kIds, 0);
  const float loss = truth->step();
  EXPECT_NEAR(gpu->step(), loss, 0.01 * std::abs(loss));
  (void)wide->step();
  std::size_t i = 0;
  double of_backend = 0, of_bf16 = 0, changes = 0;
  for (const Session::Variable& variable : truth->variables()) {
    const std::vector<float> right = numbers(truth->read(variable.name));
    std::vector<float> change = right, off = numbers(gpu->read(variable.name)),
                       rounding = numbers(wide->read(variable.name));
    for (std::size_t k = 0; k < right.size(); ++k) {
      change[k] -= before[i][k];
      off[k] -= right[k];
      rounding[k] -= right[k];
    }
    ++i;
    if (variable.role != graph::Role::kParameter) continue;
    of_backend += std::pow(norm(off), 2);
    of_bf16 += std::pow(norm(rounding), 2);
    changes += std::pow(norm(change), 2);
  }
  fmt::print("{}: off by {:.4f} of the change, bf16 itself by {:.4f}\n", GetParam().name,
             std::sqrt(of_backend / changes), std::sqrt(of_bf16 / changes));
  EXPECT_LT(std::sqrt(of_backend / changes), 0.05);
  EXPECT_LE(of_backend, of_bf16);  // no more than what rounding to bf16 does in the first place
}

TEST_P(CudaBF16Training, EveryPlanGivesTheSameBitsAtThePlannedPeak) {
  const Trained all = train(on("cuda", "keep_all"));
  EXPECT_EQ(all.measured, all.planned);
  const Bytes floor = train(on("cuda", "auto", {.kind = Budget::Kind::kFloor}), 1).planned;
  int plans = 0;
  for (const planner::Strategy* strategy : planner::all_strategies()) {
    for (const Bytes budget : {all.measured, floor + (all.measured - floor) / 2, floor}) {
      const std::string name(strategy->name());
      SCOPED_TRACE(name + " at " + std::to_string(budget));
      auto created =
          Session::create(model_, {}, {.optimizer = sgd()}, on("cuda", name, bytes_budget(budget)));
      // The floor of another strategy may lie above that of auto.
      if (name != "auto" && std::holds_alternative<planner::Infeasible>(created)) continue;
      const Trained tried = train(*std::get<std::unique_ptr<Session>>(created));
      EXPECT_EQ(tried.hash, all.hash);
      EXPECT_EQ(tried.losses, all.losses);
      EXPECT_EQ(tried.measured, tried.planned);
      EXPECT_LE(tried.measured, budget);
      ++plans;
    }
  }
  EXPECT_GE(plans, 6);
}

TEST_P(CudaBF16Training, EveryInstructionWritesWhatItSaysAndNothingElse) {
  SessionOptions checked = on("cuda", "segments");
  checked.debug = true;
  EXPECT_EQ(train(checked).hash, train(on("cuda", "keep_all")).hash);
}

TEST_P(CudaBF16Training, RecordedStepsGiveTheBitsOfPlainOnes) {
  SessionOptions plain = on("cuda", "segments");
  plain.record_steps = false;
  const Trained queued = train(plain, 5);
  SessionOptions recorded = plain;
  recorded.record_steps = true;
  const Trained played = train(recorded, 5);
  EXPECT_EQ(played.hash, queued.hash);
  EXPECT_EQ(played.losses, queued.losses);
}

TEST_P(CudaBF16Training, AnyOrderOfStreamsGivesTheSameBits) {
  std::vector<std::uint64_t> hashes;
  for (int seed = 0; seed < 6; ++seed) {
    test::cuda::reset();
    using test::cuda::Policy;
    const Policy policies[] = {Policy::kRandom, Policy::kStarve, Policy::kOthersFirst};
    test::cuda::set_policy(policies[seed % 3], static_cast<std::uint64_t>(seed));
    SessionOptions options = on("cuda", "segments");
    options.record_steps = seed % 2 == 0;
    hashes.push_back(train(options).hash);
    ASSERT_EQ(hashes.back(), hashes.front()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, CudaBF16Training, testing::ValuesIn(networks()),
                         [](const auto& param) { return param.param.name; });

models::Model resnet(const models::ModelOptions& options, bool bf16) {
  models::Model model = models::make_model("resnet20", options);
  if (bf16) model.graph = graph::mixed_precision(model.graph);
  return model;
}

// What stays f32: 270,000 parameters with gradient and momentum, 3.2 MB, and 0.2 MB of images.
TEST(CudaBF16, KeepingEverythingTakesLittleMoreThanHalfTheBytes) {
  test::cuda::reset();
  const auto peak = [](bool bf16) {
    const models::ModelOptions options{
        .batch = 16, .channels = 3, .height = 32, .width = 32, .classes = kIds};
    const auto session =
        make_session(resnet(options, bf16), on("cuda", "keep_all"), {.optimizer = sgd()});
    return static_cast<double>(session->report().peak_bytes);
  };
  const double f32 = peak(false), bf16 = peak(true);
  fmt::print("f32 {:.1f} MB, bf16 {:.1f} MB\n", f32 / 1e6, bf16 / 1e6);
  EXPECT_LT(bf16, 0.6 * f32);
  EXPECT_GT(bf16, 0.5 * f32);
}

TEST(CudaBF16, AGpuOfAnOlderGenerationIsRefused) {
  test::cuda::reset();
  test::cuda::set_machine({.generation = 7});
  models::Model model = models::make_model(
      "mlp", {.batch = 2, .channels = 1, .height = 8, .width = 8, .classes = kIds});
  model.graph = graph::mixed_precision(model.graph);
  const std::string refusal =
      error_of([&] { (void)make_session(model, on("cuda", "keep_all"), {.optimizer = sgd()}); });
  EXPECT_NE(refusal.find("has compute capability 7.x"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("--precision f32"), std::string::npos) << refusal;
  test::cuda::reset();
}

}  // namespace
}  // namespace reprise::api
