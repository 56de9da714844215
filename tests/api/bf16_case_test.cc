// Training in bf16 beside f32 parameters: the same promises as in f32, about half the activations,
// and losses that follow those of f32.

#include <cmath>
#include <gtest/gtest.h>

#include "api/trainer.h"
#include "planner/strategy.h"
#include "tests/api/training_case.h"

namespace reprise::api {
namespace {

constexpr graph::DType kBF16 = graph::DType::kBF16;

models::ModelOptions images(std::int64_t batch, graph::DType precision) {
  return {
      .batch = batch, .channels = 3, .height = 8, .width = 8, .classes = 5, .precision = precision};
}

models::ModelOptions sequences(graph::DType precision) {
  return {.batch = 2,
          .hidden = 8,
          .layers = 2,
          .vocabulary = 5,
          .seq_len = 12,
          .chunk = 3,
          .dropout = 0.3,
          .precision = precision};
}

graph::TrainingOptions momentum(std::int64_t micro_batches = 1) {
  return {.optimizer = graph::SgdAttributes{.rate = {.base = 0.02}, .momentum = 0.9},
          .micro_batches = micro_batches};
}

struct Result {
  std::vector<float> losses;
  std::uint64_t hash = 0;
  PlanReport report;
};

Result run(const models::Model& model, const SessionOptions& options, std::size_t steps,
           std::int64_t micro_batches = 1) {
  const auto session = make_session(model, options, momentum(micro_batches));
  Result result;
  const graph::Graph training =
      graph::make_training_graph(model.graph, momentum(micro_batches)).graph;
  for (std::size_t step = 0; step < steps; ++step) {
    if (micro_batches > 1) {
      for (std::int64_t k = 0; k < micro_batches; ++k) {
        const float half = 1.0F / static_cast<float>(micro_batches);
        session->set_input(graph::micro_batch_name(k, graph::kGradientWeight),
                           std::as_bytes(std::span(&half, 1)));
      }
    }
    feed(model.graph, 5, step, [&](const std::string& name, std::span<const std::byte> plain) {
      for (std::int64_t k = 0; k < micro_batches; ++k)
        session->set_input(graph::micro_batch_name(k, name), plain);
    });
    result.losses.push_back(session->step());
  }
  result.hash = session->state_hash();
  result.report = session->report();
  EXPECT_EQ(session->peak_bytes_measured(), result.report.peak_bytes) << options.plan.planner;
  return result;
}

// Every planner at three budgets: what keeping everything takes, the planner's floor, and half way.
void expect_same_bits(const models::Model& model, std::int64_t micro_batches = 1) {
  const Result keep_all = run(model, on("cpu", "keep_all"), 2, micro_batches);
  EXPECT_EQ(keep_all.report.precision, "bf16");
  int compared = 0;
  for (const planner::Strategy* strategy : planner::all_strategies()) {
    const std::string name(strategy->name());
    if (name == "keep_all") continue;
    const SessionOptions at_floor = on("cpu", name, {.kind = Budget::Kind::kFloor});
    Result least;
    try {
      least = run(model, at_floor, 2, micro_batches);
    } catch (const base::Error&) {
      continue;  // a planner for other graphs
    }
    if (least.report.peak_bytes >= keep_all.report.peak_bytes) continue;
    const Bytes middle = (keep_all.report.peak_bytes + least.report.peak_bytes) / 2;
    Result between = run(model, on("cpu", name, bytes_budget(middle)), 2, micro_batches);
    EXPECT_LE(between.report.peak_bytes, middle);
    for (const Result* result : {&least, &between}) {
      EXPECT_EQ(result->hash, keep_all.hash) << name;
      EXPECT_EQ(result->losses, keep_all.losses) << name;
      compared += result->report.recomputed_nodes > 0 ? 1 : 0;
    }
  }
  EXPECT_GE(compared, 2) << "hardly a plan recomputed anything";
}

TEST(Bf16Training, NoPlanChangesABitOfAResnet) {
  expect_same_bits(models::make_model("resnet20", images(2, kBF16)));
}
TEST(Bf16Training, NoPlanChangesABitOfAnMlpInMicroBatches) {
  models::ModelOptions options = images(4, kBF16);
  options.layers = 5;
  options.hidden = 16;
  expect_same_bits(models::make_model("mlp", options), 3);
}
TEST(Bf16Training, NoPlanChangesABitOfAnLstm) {
  expect_same_bits(models::make_model("lstm", sequences(kBF16)));
}
TEST(Bf16Training, NoPlanChangesABitOfAGru) {
  expect_same_bits(models::make_model("gru", sequences(kBF16)));
}
TEST(Bf16Training, NoPlanChangesABitOfAUnet) {
  models::ModelOptions options = images(2, kBF16);
  options.layers = 1;
  options.hidden = 8;
  expect_same_bits(models::make_model("unet", options));
}

template <class T>
double mean_of_last(const std::vector<T>& losses, std::size_t count) {
  double sum = 0;
  for (std::size_t i = losses.size() - count; i < losses.size(); ++i)
    sum += static_cast<double>(losses[i]);
  return sum / static_cast<double>(count);
}

// Fifty steps on synthetic images; the mean of the last ten, since single losses wander.
double trained_loss(const std::string& name, std::int64_t batch, graph::DType precision) {
  TrainOptions options;
  options.model = name;
  options.model_options = {.batch = batch,
                           .channels = 1,
                           .height = 16,
                           .width = 16,
                           .classes = 10,
                           .precision = precision};
  options.optimizer = graph::SgdAttributes{.rate = {.base = 0.005}, .momentum = 0.9};
  options.session = on("cpu", "keep_all");
  options.steps = 50;
  options.evaluate = false;
  const TrainReport report = std::get<TrainReport>(train(options));
  const double last = mean_of_last(report.losses, 10);
  EXPECT_LT(last, 0.85 * static_cast<double>(report.losses[0])) << name << " does not learn";
  return last;
}

TEST(Bf16Training, LossesFollowThoseOfF32) {
  for (const std::string name : {"mlp", "resnet20"}) {
    const double f32 = trained_loss(name, 32, graph::DType::kF32);
    const double bf16 = trained_loss(name, 32, kBF16);
    EXPECT_NE(bf16, f32) << name;
    EXPECT_NEAR(bf16, f32, 0.04 * f32) << name;
  }
}

// The backends round the same values: only sums that fall on the other side of a tie differ.
TEST(Bf16Training, TheCpuComputesWhatTheReferenceDoes) {
  for (const std::string name : {"mlp", "resnet20", "lstm", "gru", "densenet"}) {
    const bool sequence = name == "lstm" || name == "gru";
    const models::Model model =
        models::make_model(name, sequence ? sequences(kBF16) : images(4, kBF16));
    const Result cpu = run(model, on("cpu", "keep_all"), 2);
    const Result truth = run(model, on("reference", "keep_all"), 2);
    for (std::size_t step = 0; step < 2; ++step) {
      EXPECT_NEAR(static_cast<double>(cpu.losses[step]), static_cast<double>(truth.losses[step]),
                  0.02)
          << name << " step " << step;
    }
  }
}

// Weights, optimizer state and gradients of weights stay 4 bytes; with 64 images the activations,
// which take 2, are most of the step.
TEST(Bf16Training, AResnetTakesAboutHalfTheBytes) {
  models::ModelOptions options = images(64, kBF16);
  options.height = options.width = 16;
  const auto peak = [&](graph::DType precision) {
    options.precision = precision;
    const auto session =
        make_session(models::make_model("resnet20", options), on("cpu", "keep_all"), momentum());
    return static_cast<double>(session->report().peak_bytes - session->report().persistent_bytes);
  };
  EXPECT_LT(peak(kBF16), 0.58 * peak(graph::DType::kF32));
}

TEST(Bf16Training, EvaluatesInBf16) {
  const auto score = [](graph::DType precision) {
    TrainOptions options;
    options.model = "mlp";
    options.model_options = images(16, precision);
    options.session = on("cpu", "keep_all");
    options.steps = 20;
    auto trained = train(options);
    return *std::get<TrainReport>(trained).test_loss;
  };
  const double f32 = score(graph::DType::kF32);
  EXPECT_NEAR(score(kBF16), f32, 0.05 * f32);
}

}  // namespace
}  // namespace reprise::api
