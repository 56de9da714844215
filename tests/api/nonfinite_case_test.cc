// Steps with gradients that are not finite: skipped by all ranks together or by none, and nothing
// that persists has changed.

#include <cmath>
#include <limits>
#include <mutex>

#include "gmock/gmock.h"

#include "api/replicas.h"
#include "api/trainer.h"
#include "tests/api/training_case.h"
#include "tests/runtime/comm_kinds.h"

namespace reprise::api {
namespace {

using runtime::comm::Communicator;
using runtime::comm::testing::run_ranks;
using runtime::comm::testing::threads_kind;
using runtime::comm::testing::world;
using ::testing::HasSubstr;

std::shared_ptr<Communicator> borrowed(Communicator& end) {
  return {&end, [](Communicator*) {}};
}

graph::SgdAttributes skipping() {
  return {.rate = {.base = 0.05}, .momentum = 0.9, .skip_nonfinite = true};
}

// C42: two ranks, one NaN in the input of rank 1 in step 3. Parameters, momentum and the running
// statistics of batch norm stay as step 2 left them, on both ranks; step 4 goes on as usual.
TEST(NonFiniteCase, ANanOnOneRankSkipsTheStepOnAll) {
  const models::Model model = models::make_model(
      "resnet20", {.batch = 2, .channels = 3, .height = 8, .width = 8, .classes = 3});
  for (const char* planner : {"keep_all", "auto"}) {
    std::vector<std::vector<std::uint64_t>> states(2, std::vector<std::uint64_t>(5));
    std::vector<std::vector<std::uint64_t>> replicas = states;
    std::vector<std::vector<float>> norms(2, std::vector<float>(5));
    const auto thrown = run_ranks(threads_kind(), world(2), [&](Communicator& end) {
      const auto rank = static_cast<std::size_t>(end.rank());
      SessionOptions options = on("cpu", planner, {.kind = Budget::Kind::kFloor});
      options.ranks = borrowed(end);
      const auto session = make_session(model, options, {.optimizer = skipping()});
      for (std::size_t step = 1; step <= 4; ++step) {
        std::vector<float> images = wave(2 * 3 * 64, 2 * step + rank);
        if (step == 3 && rank == 1) images[77] = std::numeric_limits<float>::quiet_NaN();
        session->set_input("images", bytes_of(images));
        session->set_input("labels", bytes_of(ids(2, 3, step + rank)));
        session->set_gradient_weight(0.5F);
        (void)session->step();
        norms[rank][step] = session->gradient_norm().value();
        states[rank][step] = session->state_hash();
        replicas[rank][step] = replica_hash(*session);
      }
    });
    EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
    for (const std::size_t rank : {0u, 1u}) {
      EXPECT_EQ(states[rank][3], states[rank][2]) << planner << ", rank " << rank;
      EXPECT_NE(states[rank][4], states[rank][3]);
      EXPECT_FALSE(std::isfinite(norms[rank][3]));
      EXPECT_TRUE(std::isfinite(norms[rank][4]));
    }
    EXPECT_EQ(replicas[0], replicas[1]);
  }
}

// C42: 3e38 on both ranks is finite on each; their sum is beyond the largest f32, 3.4e38.
TEST(NonFiniteCase, ASumOverRanksThatOverflowsIsSkippedToo) {
  graph::Builder b("huge");
  b.set_loss(b.reduce_sum(b.mul(b.parameter("w", {1}), b.input("x", {1})), {}, false, "loss"));
  const models::Model model{.graph = b.finish(), .initializers = {{"w", {Kind::kOnes, 0}}}};
  std::vector<std::vector<float>> after(2);
  const auto thrown = run_ranks(threads_kind(), world(2), [&](Communicator& end) {
    SessionOptions options = on("cpu");
    options.ranks = borrowed(end);
    const auto session = make_session(
        model, options,
        {.optimizer = graph::SgdAttributes{.rate = {.base = 1.0}, .skip_nonfinite = true}});
    for (const float x : {3e38F, 0.25F}) {
      session->set_input("x", bytes_of(std::vector<float>{x}));
      session->set_gradient_weight(1.0F);
      (void)session->step();
      after[static_cast<std::size_t>(end.rank())].push_back(numbers(session->read("w"))[0]);
    }
  });
  EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
  for (const auto& w : after) EXPECT_THAT(w, ::testing::ElementsAre(1.0F, 0.5F));
}

TrainOptions runaway(double rate) {
  TrainOptions options;
  options.model = "mlp";
  options.model_options = {
      .batch = 4, .channels = 1, .height = 4, .width = 4, .classes = 3, .hidden = 8, .layers = 2};
  options.optimizer = graph::SgdAttributes{.rate = {.base = rate}};
  options.session = on("cpu", "keep_all");
  options.steps = 40;
  options.evaluate = false;
  return options;
}

// The first step makes weights of about 1e30, whose products overflow from the second on.
TEST(NonFiniteCase, TenSkippedStepsInARowEndTheRun) {
  TrainOptions options = runaway(1e30);
  options.optimizer = graph::SgdAttributes{.rate = {.base = 1e30}, .skip_nonfinite = true};
  std::vector<std::string> notes;
  TrainHooks hooks;
  hooks.note = [&](const std::string& text) { notes.push_back(text); };
  EXPECT_THAT(error_of([&] { (void)train(options, hooks); }),
              ::testing::AllOf(HasSubstr("diverged: 10 steps in a row were skipped"),
                               HasSubstr("of step 11 of 40")));
  ASSERT_EQ(notes.size(), 10U);
  EXPECT_THAT(notes[0], HasSubstr("skipped step 2: the norm of all gradients"));
}

TEST(NonFiniteCase, WithoutSkippingTheRunEndsAtOnce) {
  EXPECT_THAT(error_of([&] { (void)train(runaway(1e30)); }),
              HasSubstr("the loss of step 2 of 40 is"));
}

TEST(NonFiniteCase, TheReportTellsTheNormBeforeClipping) {
  TrainOptions options = runaway(0.01);
  options.steps = 3;
  const auto plain = std::get<TrainReport>(train(options));
  EXPECT_FALSE(plain.grad_norm.has_value());
  options.optimizer = graph::SgdAttributes{.rate = {.base = 0.01}, .clip_norm = 1e-3};
  const auto clipped = std::get<TrainReport>(train(options));
  EXPECT_GT(clipped.grad_norm.value(), 1e-3);
  EXPECT_EQ(clipped.skipped_steps, 0);
  EXPECT_NE(clipped.state_hash, plain.state_hash);
  options.optimizer = graph::SgdAttributes{.rate = {.base = 0.01}, .clip_norm = 1e9};
  EXPECT_EQ(std::get<TrainReport>(train(options)).state_hash, plain.state_hash);
}

}  // namespace
}  // namespace reprise::api
