// Evaluations between training steps, and what is asked in the wrong order.

#include <gmock/gmock.h>
#include <map>

#include "tests/api/training_case.h"
#include "tests/support/hooked_backend.h"

namespace reprise::api {
namespace {

using testing::HasSubstr;

constexpr std::size_t kClasses = 4;

models::Model resnet(bool training) {
  return models::make_model("resnet20", {.batch = 2,
                                         .channels = 1,
                                         .height = 8,
                                         .width = 8,
                                         .classes = kClasses,
                                         .training = training});
}

models::Model lstm(bool training) {
  return models::make_model("lstm", {.batch = 2,
                                     .hidden = 4,
                                     .layers = 2,
                                     .vocabulary = kClasses,
                                     .seq_len = 6,
                                     .chunk = 3,
                                     .dropout = 0.25,
                                     .training = training});
}

graph::TrainingOptions momentum() {
  return {.optimizer = graph::SgdAttributes{.rate = {.base = 0.1}, .momentum = 0.9}};
}

void train(Session& session, const models::Model& model, std::size_t step) {
  feed(session, model.graph, kClasses, step);
  session.step();
}

struct Evaluator {
  const models::Model& model;
  Session& session;

  void operator()(int times) const {
    session.begin_evaluation();
    for (int i = 0; i < times; ++i) {
      feed(model.graph, kClasses, static_cast<std::size_t>(i),
           [&](const auto& name, auto plain) { session.set_evaluation_input(name, plain); });
      (void)session.evaluate();
    }
    session.end_evaluation();
  }
};

// Three evaluations, a step, two evaluations, a step: the parameters, statistics and carried states
// of the last step are those of two steps alone. There is no training-mode forward without its
// backward: a step is one schedule.
TEST(PassesCase, EvaluationsBetweenStepsChangeNothingAndRecomputeNothing) {
  for (const bool sequence : {false, true}) {
    const models::Model model = sequence ? lstm(true) : resnet(true);
    const models::Model evaluation = sequence ? lstm(false) : resnet(false);
    std::map<std::string, int> runs;
    SessionOptions options = on("cpu", "auto", {.kind = Budget::Kind::kFloor});
    options.backend = std::make_shared<test::HookedBackend>(
        kernels::make_backend("cpu", {.threads = 1}),
        [&](const auto& prepared, graph::NodeId node, const kernels::Call&) {
          ++runs[prepared.graph.nodes[node].name];
        });
    const auto session = make_session(model, options, momentum(), {evaluation});
    const auto plain = make_session(model, options, momentum());
    const Evaluator evaluate{evaluation, *session};
    const Bytes arena = session->arena_bytes();
    runs.clear();
    evaluate(3);
    for (const auto& [node, count] : runs) EXPECT_EQ(count, 3) << node;
    train(*session, model, 0);
    runs.clear();
    evaluate(2);
    for (const auto& [node, count] : runs) EXPECT_EQ(count, 2) << node;
    train(*session, model, 1);
    train(*plain, model, 0);
    train(*plain, model, 1);
    EXPECT_EQ(session->state_hash(), plain->state_hash()) << model.graph.name;
    EXPECT_EQ(session->arena_bytes(), arena);
    EXPECT_EQ(session->peak_bytes_measured(), arena);
  }
}

TEST(PassesCase, TrainingDuringAnEvaluationIsRefused) {
  const models::Model model = lstm(true);
  const models::Model evaluation = lstm(false);
  const auto session = make_session(model, on("cpu"), momentum(), {evaluation});
  train(*session, model, 0);
  const std::uint64_t before = session->state_hash();
  session->begin_evaluation();
  EXPECT_THAT(error_of([&] { session->step(); }), HasSubstr("end_evaluation()"));
  EXPECT_THAT(error_of([&] { feed(*session, model.graph, kClasses, 1); }),
              HasSubstr("end_evaluation()"));
  EXPECT_THAT(error_of([&] { session->write("layer1.h", {}); }), HasSubstr("end_evaluation()"));
  EXPECT_THAT(error_of([&] { session->begin_evaluation(); }), HasSubstr("already under way"));
  // What is saved now is the state of training, not the one that evaluation carries.
  EXPECT_EQ(session->state_hash(), before);
  session->end_evaluation();
  EXPECT_EQ(session->state_hash(), before);
  EXPECT_THAT(error_of([&] { (void)session->evaluate(); }), HasSubstr("begin_evaluation()"));
}

TEST(PassesCase, AStepWantsInputsThatNothingHasTakenSince) {
  const models::Model model = lstm(true);
  const models::Model evaluation = lstm(false);
  const auto session = make_session(model, on("cpu"), momentum(), {evaluation});
  const auto step = [&] { session->step(); };
  EXPECT_THAT(error_of(step), HasSubstr("'tokens' has not been set"));
  train(*session, model, 0);
  EXPECT_THAT(error_of(step), HasSubstr("'tokens' has not been set"));
  feed(*session, model.graph, kClasses, 1);
  Evaluator{evaluation, *session}(1);
  EXPECT_THAT(error_of(step), HasSubstr("'tokens' has not been set"));
  EXPECT_EQ(session->steps_done(), 1u);
  session->begin_evaluation();
  EXPECT_THAT(error_of([&] { (void)session->evaluate(); }), HasSubstr("has not been set"));
  session->end_evaluation();
}

TEST(PassesCase, OutputsOfAStepAreReadBeforeTheirBytesAreTaken) {
  const models::Model model = lstm(true);
  const auto session = make_session(model, on("cpu"), momentum(), {lstm(false)});
  const auto read = [&] { (void)session->read("loss"); };
  EXPECT_THAT(error_of(read), HasSubstr("after a training step"));
  train(*session, model, 0);
  EXPECT_EQ(error_of(read), "");
  session->begin_evaluation();
  EXPECT_THAT(error_of(read), HasSubstr("after a training step"));
  session->end_evaluation();
  train(*session, model, 1);
  session->set_input("tokens", bytes_of(ids(12, kClasses)));
  EXPECT_THAT(error_of(read), HasSubstr("after a training step"));
}

TEST(PassesCase, ASessionWithoutAnEvaluationSaysSoAndGoesOn) {
  const models::Model model = lstm(true);
  const auto session = make_session(model, on("cpu"), momentum());
  EXPECT_FALSE(session->can_evaluate());
  EXPECT_THAT(error_of([&] { session->begin_evaluation(); }), HasSubstr("without an evaluation"));
  EXPECT_NO_THROW(train(*session, model, 0));
}

}  // namespace
}  // namespace reprise::api
