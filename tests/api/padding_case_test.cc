// Sequences of different lengths in one batch: padded at the end, with targets that do not count.

#include <algorithm>
#include <map>

#include "tests/api/training_case.h"

namespace reprise::api {
namespace {

constexpr std::int64_t kVocabulary = 7, kHidden = 4;
constexpr std::int32_t kIgnored = -100;

// Stateless language model over [T,B] tokens; one loss over all steps, so that its mean is over
// the targets that count.
models::Model language_model(std::int64_t steps, std::int64_t batch) {
  models::Model model;
  graph::Builder b("padded");
  const auto parameter = [&](const std::string& name, graph::Shape shape) {
    model.initializers.push_back({name, {Kind::kNormal, 0.5}});
    return b.parameter(name, std::move(shape));
  };
  const auto tokens = b.input("tokens", {steps, batch}, graph::DType::kI32);
  const auto targets = b.input("targets", {steps, batch}, graph::DType::kI32);
  const auto x = b.embedding(parameter("table", {kVocabulary, kHidden}), tokens, "embedded");
  const auto zeros = b.fill({batch, kHidden}, 0.0, "zeros");
  const auto out =
      b.lstm(x, zeros, zeros, parameter("w_ih", {4 * kHidden, kHidden}),
             parameter("w_hh", {4 * kHidden, kHidden}), parameter("bias", {4 * kHidden}), "lstm");
  const auto rows = b.reshape(out.y, {steps * batch, kHidden});
  const auto logits = b.linear(rows, parameter("head", {kVocabulary, kHidden}), "logits");
  b.set_loss(b.softmax_cross_entropy(logits, b.reshape(targets, {steps * batch}), {}, "loss"));
  model.graph = b.finish();
  return model;
}

graph::TrainingOptions all_gradients(const models::Model& model) {
  graph::TrainingOptions options;
  for (std::size_t i = 0; i < model.graph.values.size(); ++i) {
    const graph::Value& value = model.graph.values[graph::ValueId(i)];
    if (value.role == graph::Role::kParameter || value.name == "embedded") {
      options.fetch_gradients.push_back(graph::ValueId(i));
    }
  }
  return options;
}

struct Sequence {
  std::vector<std::int32_t> tokens, targets;
};

// token_i = (3 i + first) mod 7, and what follows it as its target.
Sequence sequence(std::size_t length, std::int32_t first) {
  Sequence made;
  for (std::size_t i = 0; i < length; ++i) {
    made.tokens.push_back((3 * static_cast<std::int32_t>(i) + first) % 7);
    made.targets.push_back((3 * static_cast<std::int32_t>(i + 1) + first) % 7);
  }
  return made;
}

struct Outcome {
  double loss = 0;
  std::map<std::string, std::vector<float>> gradients;
};

Outcome run(const models::Model& model, const std::vector<Sequence>& batch, std::size_t steps,
            std::int32_t padding) {
  std::vector<std::int32_t> tokens(steps * batch.size(), padding);
  std::vector<std::int32_t> targets(steps * batch.size(), kIgnored);
  for (std::size_t row = 0; row < batch.size(); ++row) {
    for (std::size_t t = 0; t < batch[row].tokens.size(); ++t) {
      tokens[t * batch.size() + row] = batch[row].tokens[t];
      targets[t * batch.size() + row] = batch[row].targets[t];
    }
  }
  const auto training = all_gradients(model);
  const auto session =
      make_session(model, on("cpu", "auto", {.kind = Budget::Kind::kFloor}), training);
  session->set_input("tokens", bytes_of(tokens));
  session->set_input("targets", bytes_of(targets));
  Outcome outcome;
  outcome.loss = static_cast<double>(session->step());
  for (const graph::ValueId value : training.fetch_gradients) {
    const std::string& name = model.graph.values[value].name;
    outcome.gradients[name] = numbers(session->read("grad/" + name));
  }
  return outcome;
}

// The mean over all counted targets, put together from each sequence alone.
Outcome alone(const std::vector<Sequence>& batch) {
  Outcome sum;
  double counted = 0;
  for (const Sequence& each : batch) {
    const auto length = each.tokens.size();
    if (length == 0) continue;
    const Outcome one =
        run(language_model(static_cast<std::int64_t>(length), 1), {each}, length, 0);
    counted += static_cast<double>(length);
    sum.loss += one.loss * static_cast<double>(length);
    for (const auto& [name, gradient] : one.gradients) {
      auto& into = sum.gradients[name];
      into.resize(gradient.size());
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        into[i] += gradient[i] * static_cast<float>(length);
      }
    }
  }
  sum.loss /= counted;
  for (auto& [name, gradient] : sum.gradients) {
    for (float& value : gradient) value /= static_cast<float>(counted);
  }
  return sum;
}

void expect_as_alone(const std::vector<std::size_t>& lengths) {
  std::vector<Sequence> batch;
  std::size_t steps = 0;
  for (const std::size_t length : lengths) {
    batch.push_back(sequence(length, static_cast<std::int32_t>(batch.size())));
    steps = std::max(steps, length);
  }
  const models::Model model =
      language_model(static_cast<std::int64_t>(steps), static_cast<std::int64_t>(batch.size()));
  const Outcome padded = run(model, batch, steps, 0);
  const Outcome expected = alone(batch);
  EXPECT_NEAR(padded.loss, expected.loss, 1e-5);
  for (const auto& [name, gradient] : expected.gradients) {
    if (name == "embedded") continue;
    const auto& got = padded.gradients.at(name);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(got[i]), static_cast<double>(gradient[i]), 1e-5) << name;
    }
  }
  // d loss / d padding = 0, and other padding gives the same bits.
  const auto& dx = padded.gradients.at("embedded");  // [T,B,D]
  for (std::size_t row = 0; row < batch.size(); ++row) {
    for (std::size_t t = lengths[row]; t < steps; ++t) {
      for (std::size_t d = 0; d < kHidden; ++d) {
        EXPECT_EQ(dx[(t * batch.size() + row) * kHidden + d], 0.0f) << row << " " << t;
      }
    }
  }
  const Outcome other = run(model, batch, steps, 6);
  EXPECT_EQ(other.loss, padded.loss);
  for (const auto& [name, gradient] : other.gradients) {
    EXPECT_EQ(gradient, padded.gradients.at(name)) << name;
  }
}

TEST(PaddingCase, PaddedSequencesGiveWhatEachGivesAlone) {
  expect_as_alone({4, 2});
}

TEST(PaddingCase, OneLongSequenceAmongShortOnes) {
  expect_as_alone({1, 1, 1, 5});
}

TEST(PaddingCase, ASequenceOfLengthZeroCountsForNothing) {
  expect_as_alone({3, 0});
}

TEST(PaddingCase, ABatchOfNothingButPaddingHasNoLossAndNoGradient) {
  const models::Model model = language_model(3, 2);
  const Outcome nothing = run(model, {{}, {}}, 3, 1);
  EXPECT_EQ(nothing.loss, 0);
  for (const auto& [name, gradient] : nothing.gradients) {
    for (const float value : gradient) EXPECT_EQ(value, 0.0f) << name;
  }
}

}  // namespace
}  // namespace reprise::api
