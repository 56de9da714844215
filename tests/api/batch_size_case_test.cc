// Batches of other sizes than planned, carried state of another batch, and a batch of fewer items.

#include <gmock/gmock.h>

#include "tests/api/training_case.h"

namespace reprise::api {
namespace {

using testing::HasSubstr;

constexpr std::size_t kClasses = 5, kPixels = 16;

models::Model mlp(std::int64_t batch, bool training = true) {
  return models::make_model("mlp", {.batch = batch,
                                    .channels = 1,
                                    .height = 4,
                                    .width = 4,
                                    .classes = kClasses,
                                    .hidden = 128,
                                    .layers = 2,
                                    .training = training});
}

graph::TrainingOptions momentum(const models::Model& model) {
  graph::TrainingOptions options{.optimizer =
                                     graph::SgdAttributes{.rate = {.base = 0.1}, .momentum = 0.9}};
  for (std::size_t i = 0; i < model.graph.values.size(); ++i) {
    const graph::ValueId id(i);
    if (model.graph.values[id].role == graph::Role::kParameter) {
      options.fetch_gradients.push_back(id);
    }
  }
  return options;
}

std::string set_images(Session& session, std::size_t items) {
  return error_of([&] { session.set_input("images", bytes_of(wave(items * kPixels))); });
}

// 8, 5, 8, 16 with an evaluation of 32 in between: what is not 8 is refused before anything
// changes, evaluation has a plan of its own, and the steps of 8 are those of a run that saw nothing
// else.
TEST(BatchSizeCase, OtherSizesAreRefusedAndTheStepsOfThePlannedSizeAreThoseOfAFreshRun) {
  const models::Model model = mlp(8);
  const models::Model evaluation = mlp(32, false);
  const auto session = make_session(model, on("cpu"), momentum(model), {evaluation});
  const auto fresh = make_session(model, on("cpu"), momentum(model));
  for (std::size_t step = 0; step < 3; ++step) {
    EXPECT_THAT(set_images(*session, 5), HasSubstr("planned for 8, got 5"));
    EXPECT_THAT(set_images(*session, 16), HasSubstr("planned for 8, got 16"));
    session->begin_evaluation();
    feed(evaluation.graph, kClasses, step,
         [&](const std::string& name, auto plain) { session->set_evaluation_input(name, plain); });
    EXPECT_GT(session->evaluate().loss, 0);
    session->end_evaluation();
    feed(*session, model.graph, kClasses, step);
    feed(*fresh, model.graph, kClasses, step);
    EXPECT_EQ(session->step(), fresh->step());
    EXPECT_EQ(session->state_hash(), fresh->state_hash());
  }
  EXPECT_EQ(session->peak_bytes_measured(), session->arena_bytes());
}

// Five items in a plan for eight: three of no class, which count for nothing.
TEST(BatchSizeCase, AShortBatchIsFilledWithIgnoredLabelsAndItsMeanIsOverWhatCounts) {
  const models::Model eight = mlp(8);
  const models::Model five = mlp(5);
  const auto padded = make_session(eight, on("cpu"), momentum(eight));
  const auto exact = make_session(five, on("cpu"), momentum(five));
  const std::vector<float> pixels = wave(8 * kPixels);
  const std::vector<std::int32_t> labels = ids(5, kClasses);
  padded->set_input("images", bytes_of(pixels));
  padded->set_input("labels", bytes_of<std::int32_t>({labels[0], labels[1], labels[2], labels[3],
                                                      labels[4], -100, -100, -100}));
  exact->set_input("images", std::as_bytes(std::span(pixels).first(5 * kPixels)));
  exact->set_input("labels", bytes_of(labels));
  EXPECT_NEAR(static_cast<double>(padded->step()), static_cast<double>(exact->step()), 1e-6);
  for (const auto& variable : exact->variables()) {
    if (variable.role != graph::Role::kParameter) continue;
    const auto got = numbers(padded->read("grad/" + variable.name));
    const auto want = numbers(exact->read("grad/" + variable.name));
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(got[i]), static_cast<double>(want[i]), 1e-6) << variable.name;
    }
  }
}

models::Model lstm(std::int64_t batch, std::int64_t seq_len, bool training = true) {
  return models::make_model("lstm", {.batch = batch,
                                     .hidden = 4,
                                     .layers = 1,
                                     .vocabulary = kClasses,
                                     .seq_len = seq_len,
                                     .chunk = 5,
                                     .training = training});
}

TEST(BatchSizeCase, SequencesOfAnotherLengthAreRefusedByLength) {
  const models::Model model = lstm(2, 10);
  const auto session = make_session(model, on("cpu"), momentum(model));
  EXPECT_THAT(error_of([&] { session->set_input("tokens", bytes_of(ids(2, kClasses))); }),
              HasSubstr("planned for 10, got 1 along"));
  const auto fresh = make_session(model, on("cpu"), momentum(model));
  for (Session* each : {session.get(), fresh.get()}) {
    feed(*each, model.graph, kClasses, 0);
    each->step();
  }
  EXPECT_EQ(session->state_hash(), fresh->state_hash());
}

// Carried rows 0, 1, 2, 3 of a batch of 4; then 1 row, then 3.
TEST(BatchSizeCase, CarriedStateOfAnotherBatchIsRefusedBeforeAnyWrite) {
  const models::Model model = lstm(4, 5);
  const auto session = make_session(model, on("cpu"), momentum(model));
  std::vector<float> rows;
  for (int row = 0; row < 4; ++row) rows.insert(rows.end(), 4, static_cast<float>(row));
  session->write("layer1.h", bytes_of(rows));
  for (const std::size_t batch : {std::size_t{1}, std::size_t{3}}) {
    EXPECT_NE(error_of([&] { session->set_input("tokens", bytes_of(ids(5 * batch, kClasses))); }),
              "");
    EXPECT_THAT(error_of([&] { session->write("layer1.h", bytes_of(wave(batch * 4))); }),
                HasSubstr(std::to_string(batch * 16) + " bytes"));
  }
  EXPECT_EQ(numbers(session->read("layer1.h")), rows);
  // Nor does an evaluation of another batch get at it: the state of both must agree in shape.
  EXPECT_THAT(
      error_of([&] { (void)make_session(model, on("cpu"), momentum(model), {lstm(3, 5, false)}); }),
      HasSubstr("layer1."));
}

}  // namespace
}  // namespace reprise::api
