// The CPU backend on its own: layouts, hand-computed values, what it refuses.

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/builder.h"
#include "tests/kernels/cpu_runner.h"

namespace reprise::kernels {
namespace {

using graph::Builder;
using graph::Phase;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

std::unique_ptr<Program> prepare(const graph::Graph& graph, const Program* like = nullptr) {
  return make_cpu_backend({.threads = 2})->prepare(graph, like);
}

std::vector<float> ramp(std::int64_t count, float start, float step) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = start + step * static_cast<float>(i % 17);
  return values;
}

// Two 3x3 convolutions in a row. Plain at both ends, blocked between: oneDNN's business, but the
// second must not go back to plain in between.
graph::Graph two_convolutions(std::int64_t channels) {
  Builder b("two");
  const auto x = b.input("x", {2, channels, 5, 5});
  const auto w1 = b.parameter("w1", {channels, channels, 3, 3});
  const auto w2 = b.parameter("w2", {channels, channels, 3, 3});
  const auto h = b.relu(b.conv2d(x, w1, {.padding = {1, 1}}, "c1"), "r1");
  b.add_output(b.conv2d(h, w2, {.padding = {1, 1}}, "c2"));
  return b.finish();
}

std::size_t reorders(const graph::Graph& graph) {
  std::size_t count = 0;
  for (const graph::Node& node : graph.nodes) count += node.op == graph::OpKind::kReorder ? 1 : 0;
  return count;
}

std::vector<float> naive_convolution(const std::vector<float>& x, const std::vector<float>& w,
                                     int batch, int channels, int size) {
  std::vector<float> y(x.size());
  for (int n = 0; n < batch; ++n)
    for (int o = 0; o < channels; ++o)
      for (int i = 0; i < size; ++i)
        for (int j = 0; j < size; ++j) {
          double sum = 0;
          for (int c = 0; c < channels; ++c)
            for (int ki = 0; ki < 3; ++ki)
              for (int kj = 0; kj < 3; ++kj) {
                const int yi = i + ki - 1;
                const int xj = j + kj - 1;
                if (yi < 0 || yi >= size || xj < 0 || xj >= size) continue;
                sum +=
                    static_cast<double>(
                        x[static_cast<std::size_t>(((n * channels + c) * size + yi) * size + xj)]) *
                    w[static_cast<std::size_t>(((o * channels + c) * 3 + ki) * 3 + kj)];
              }
          y[static_cast<std::size_t>(((n * channels + o) * size + i) * size + j)] =
              static_cast<float>(sum);
        }
  return y;
}

TEST(CpuBackend, ConvolutionsAgreeWithPlainLoopsAlsoWhereChannelsFillNoBlock) {
  for (const int channels : {16, 20}) {
    const std::int64_t weights = channels * channels * 9;
    CpuRunner runner(prepare(two_convolutions(channels)));
    const auto x = ramp(2 * channels * 25, -1.0f, 0.125f);
    const auto w1 = ramp(weights, -0.5f, 0.0625f);
    const auto w2 = ramp(weights, 0.5f, -0.0625f);
    runner.set("x", x);
    runner.set("w1", w1);
    runner.set("w2", w2);
    runner.step();
    auto h = naive_convolution(x, w1, 2, channels, 5);
    for (float& value : h) value = value < 0 ? 0 : value;
    const auto y = naive_convolution(h, w2, 2, channels, 5);
    const float largest = *std::max_element(y.begin(), y.end());
    EXPECT_THAT(runner.get("c2"), Pointwise(FloatNear(1e-5f * largest), y)) << channels;
  }
}

TEST(CpuBackend, ValuesBetweenConvolutionsStayBlocked) {
  const auto program = prepare(two_convolutions(16));
  const graph::PreparedGraph& prepared = program->prepared();
  for (std::size_t i = 0; i < prepared.graph.values.size(); ++i) {
    const graph::Value& value = prepared.graph.values[ValueId(i)];
    if (value.name == "x") {
      EXPECT_EQ(prepared.value_layouts[ValueId(i)], "plain");
    }
    if (value.name == "c1" || value.name == "r1" || value.name == "w1") {
      EXPECT_NE(prepared.value_layouts[ValueId(i)], "plain") << value.name;
    }
  }
  EXPECT_EQ(reorders(prepared.graph), 1u);  // x, before the first convolution
}

TEST(CpuBackend, LikeKeepsTheLayoutsOfPersistentValues) {
  const auto first = prepare(two_convolutions(16));
  // Here w1 is read by a plain op first, which would leave it plain.
  Builder b("evaluation");
  const auto x = b.input("x", {2, 16, 5, 5});
  const auto w1 = b.parameter("w1", {16, 16, 3, 3});
  b.add_output(b.reduce_sum(w1, {}, false, "sum"));
  b.add_output(b.conv2d(x, w1, {.padding = {1, 1}}, "c1"));
  const graph::Graph graph = b.finish();
  const auto free = prepare(graph);
  const auto fixed = prepare(graph, first.get());
  const auto layout = [](const Program& program) {
    for (std::size_t i = 0; i < program.prepared().graph.values.size(); ++i) {
      if (program.prepared().graph.values[ValueId(i)].name == "w1") {
        return program.prepared().value_layouts[ValueId(i)];
      }
    }
    return std::string();
  };
  EXPECT_EQ(layout(*free), "plain");
  EXPECT_EQ(layout(*fixed), layout(*first));
  CpuRunner runner(prepare(graph, first.get()));
  runner.set("x", ramp(2 * 16 * 25, 0, 1));
  runner.set("w1", std::vector<float>(16 * 16 * 9, 0.25f));
  runner.step();
  EXPECT_THAT(runner.get("sum"), ElementsAre(576.0f));  // 2304 * 0.25
}

TEST(CpuBackend, SoftmaxCrossEntropyOfEqualLogitsIsTheLogOfTheClasses) {
  Builder b("loss");
  const auto logits = b.input("logits", {3, 4});
  const auto labels = b.input("labels", {3}, graph::DType::kI32);
  b.add_output(b.softmax_cross_entropy(logits, labels, {}, "loss"));
  CpuRunner runner(prepare(b.finish()));
  runner.set("logits", std::vector<float>(12, 2.5f));
  runner.set("labels", std::vector<std::int32_t>{0, -100, 3});
  runner.step();
  EXPECT_NEAR(runner.get("loss")[0], std::log(4.0), 1e-6);
  runner.set("labels", std::vector<std::int32_t>{0, 1, 4});
  try {
    runner.step();
    FAIL() << "label 4 of 4 classes";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'loss'"));
    EXPECT_THAT(error.what(), HasSubstr("label 4 of row 2"));
  }
}

// Values 2 4 6 8: mean 5, population variance (9 + 1 + 1 + 9) / 4 = 5, sample variance 20 / 3.
TEST(CpuBackend, BatchNormHandsOverThePopulationVarianceAndStoresTheSampleOne) {
  Builder b("bn");
  const auto x = b.input("x", {4, 1, 1, 1});
  const auto gamma = b.parameter("gamma", {1});
  const auto beta = b.parameter("beta", {1});
  const auto mean = b.state("running_mean", {1});
  const auto var = b.state("running_var", {1});
  b.add_output(b.batch_norm(x, gamma, beta, mean, var, 0.1, {}, "bn"));
  CpuRunner runner(prepare(b.finish()));
  runner.set("x", std::vector<float>{2, 4, 6, 8});
  runner.set("gamma", std::vector<float>{1});
  runner.set("beta", std::vector<float>{0});
  runner.set("running_mean", std::vector<float>{0});
  runner.set("running_var", std::vector<float>{1});
  runner.step();
  EXPECT_NEAR(runner.get("running_mean")[0], 0.5, 1e-6);       // 0.1 * 5
  EXPECT_NEAR(runner.get("running_var")[0], 1.5666667, 1e-6);  // 0.9 + 0.1 * 20 / 3
}

TEST(CpuBackend, RefusesHostBuffersOfAnotherSize) {
  const auto program = prepare(two_convolutions(16));
  std::vector<std::byte> plain(8);
  std::vector<std::byte> stored(1 << 16);
  try {
    program->import_value(ValueId(0), plain, stored.data());
    FAIL() << "8 bytes for 3200";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInput);
    EXPECT_THAT(error.what(), HasSubstr("'x' [2,16,5,5] has 3200 bytes, the host's buffer 8"));
  }
}

}  // namespace
}  // namespace reprise::kernels
