// What a mean is over: all elements, or all labels that count.

#include <cmath>

#include "graph/builder.h"
#include "tests/kernels/on_backend.h"

namespace reprise::test {
namespace {

using graph::Builder;
using graph::Graph;

class WeightingCase : public OnBackend {};

// loss = mean or sum of 0.5 (w x)^2 over x = [1,2,3], w = 1:
//   mean 14/6 = 2.333333, gradient w * mean(x^2) = 14/3; sum 7, gradient 14.
TEST_P(WeightingCase, MeanAndSumOverABatch) {
  for (const bool mean : {true, false}) {
    Builder b("mean");
    const ValueId w = b.parameter("w", {1});
    const ValueId y = b.mul(b.broadcast(w, {3}), b.input("x", {3}));
    const ValueId half_squares = b.scale(b.mul(y, y), 0.5);
    b.set_loss(mean ? b.reduce_mean(half_squares, {}, false, "loss")
                    : b.reduce_sum(half_squares, {}, false, "loss"));
    Interpreter run = prepare(with_gradients(b.finish(), {w}));
    run.set<float>("w", {1});
    run.set<float>("x", {1, 2, 3});
    run.step();
    expect_near(run.get("loss"), {mean ? 7.0 / 3 : 7.0});
    expect_near(run.get("grad/w"), {mean ? 14.0 / 3 : 14.0});
  }
}

// Two classes, label 0, logits [0, log(e^L - 1)]: the loss of the row is L, its probability of
// class 0 is e^-L.
constexpr std::size_t kRows = 4;

struct Outcome {
  double loss;
  std::vector<float> gradient;  // of logits [4,2]
};

Outcome run_rows(Interpreter run, const std::vector<std::int32_t>& labels) {
  std::vector<float> logits;
  for (const double row_loss : {4.0, 1.0, 1.0, 1.0}) {
    logits.push_back(0);
    logits.push_back(static_cast<float>(std::log(std::exp(row_loss) - 1)));
  }
  run.set("logits", logits);
  run.set("labels", labels);
  run.step();
  return {static_cast<double>(run.get("loss")[0]), run.get("grad/logits")};
}

Graph rows_graph() {
  Builder b("rows");
  const ValueId logits = b.input("logits", {kRows, 2});
  const ValueId labels = b.input("labels", {kRows}, graph::DType::kI32);
  b.set_loss(b.softmax_cross_entropy(logits, labels, {}, "loss"));
  return with_gradients(b.finish(), {logits});
}

// One token of loss 4 and three of loss 1: 7/4, not the mean of means 2.5.
TEST_P(WeightingCase, TheMeanIsOverAllCountedLabels) {
  const Outcome all = run_rows(prepare(rows_graph()), {0, 0, 0, 0});
  EXPECT_NEAR(all.loss, 1.75, 1e-6);
  const double first = (std::exp(-4.0) - 1) / 4;  // (p - 1) / count
  const double other = (std::exp(-1.0) - 1) / 4;
  expect_near(all.gradient, {first, -first, other, -other, other, -other, other, -other});
}

TEST_P(WeightingCase, IgnoredLabelsNeitherCountNorGetAGradient) {
  const Outcome one = run_rows(prepare(rows_graph()), {0, -100, -100, -100});
  EXPECT_NEAR(one.loss, 4.0, 2e-6);
  const double first = std::exp(-4.0) - 1;
  expect_near(one.gradient, {first, -first, 0, 0, 0, 0, 0, 0});
}

TEST_P(WeightingCase, WithoutACountedLabelLossAndGradientAreZero) {
  const Outcome none = run_rows(prepare(rows_graph()), {-100, -100, -100, -100});
  EXPECT_EQ(none.loss, 0.0);
  EXPECT_EQ(none.gradient, std::vector<float>(2 * kRows, 0.0f));
}

REPRISE_ON_EVERY_BACKEND(WeightingCase);

}  // namespace
}  // namespace reprise::test
