// Kernels that give a row to a warp, or to a block where it is long: losses and layer norm, with
// sizes that the shared cases of ops do not reach.

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "kernels/cuda/layer_norm.h"
#include "kernels/cuda/loss.h"
#include "tests/cuda/single_kernel.h"

namespace reprise::test::cuda {
namespace {

using kernels::cuda::LabelledRows;
using kernels::cuda::LayerNormSizes;

class LongRowsTest : public SingleKernelTest {};

double log_sum_exp(const float* row, std::int64_t classes) {
  double sum = 0;
  for (std::int64_t k = 0; k < classes; ++k) sum += std::exp(static_cast<double>(row[k]));
  return std::log(sum);
}

// 1,025 classes are one more than a warp takes; 300 rows more than a block of 256 adds up at once.
class CrossEntropyTest : public SingleKernelTest,
                         public testing::WithParamInterface<LabelledRows> {};

TEST_P(CrossEntropyTest, IsThatOfPlainLoopsAndItsGradientWorksInPlace) {
  const LabelledRows r = GetParam();
  const auto rows = static_cast<std::size_t>(r.rows);
  const auto classes = static_cast<std::size_t>(r.classes);
  const std::vector<float> x = fractions(rows * classes, 3);
  std::vector<std::int32_t> labels(rows);
  for (std::size_t m = 0; m < rows; ++m) {
    labels[m] = m % 5 == 2 ? -100 : static_cast<std::int32_t>(m * 37 % classes);
  }
  const auto counted = static_cast<double>(rows - std::count(labels.begin(), labels.end(), -100));
  const double weight = r.mean ? 1.0 / counted : 1.0;
  double loss = 0;
  std::vector<double> gradient(x.size());
  for (std::size_t m = 0; m < rows; ++m) {
    if (labels[m] < 0) continue;
    const float* row = x.data() + m * classes;
    const double normaliser = log_sum_exp(row, r.classes);
    const auto label = static_cast<std::size_t>(labels[m]);
    loss += weight * (normaliser - static_cast<double>(row[label]));
    for (std::size_t k = 0; k < classes; ++k) {
      const double probability = std::exp(static_cast<double>(row[k]) - normaliser);
      gradient[m * classes + k] = 3.0 * weight * (probability - (k == label ? 1.0 : 0.0));
    }
  }

  const DeviceArray<float> logits(x);
  const DeviceArray<std::int32_t> of_rows(labels);
  const DeviceArray<float> found(1);
  const DeviceArray<double> losses(rows);
  kernels::cuda::launch_softmax_cross_entropy(r, logits.get(), of_rows.get(), found.get(),
                                              losses.get(), nullptr);
  EXPECT_NEAR(found.values()[0], loss, 1e-6 * loss);

  const DeviceArray<float> dloss(std::vector<float>{3.0F});
  const DeviceArray<std::int32_t> scratch(1);
  kernels::cuda::launch_softmax_cross_entropy_grad(r, logits.get(), of_rows.get(), dloss.get(),
                                                   logits.get(), scratch.get(), nullptr);
  expect_near(logits.values(), gradient, 3e-6 * weight);
}

INSTANTIATE_TEST_SUITE_P(All, CrossEntropyTest,
                         testing::Values(LabelledRows{.rows = 7, .classes = 1025},
                                         LabelledRows{.rows = 300, .classes = 33},
                                         LabelledRows{.rows = 9, .classes = 1500, .mean = false},
                                         LabelledRows{.rows = 1100, .classes = 2}));

TEST_F(LongRowsTest, ALabelOutOfRangeGivesALossThatIsNotANumber) {
  const LabelledRows r{.rows = 2, .classes = 3};
  const DeviceArray<float> logits(std::vector<float>(6, 0.5F));
  const DeviceArray<std::int32_t> labels(std::vector<std::int32_t>{1, 3});
  const DeviceArray<float> loss(1);
  const DeviceArray<double> losses(2);
  kernels::cuda::launch_softmax_cross_entropy(r, logits.get(), labels.get(), loss.get(),
                                              losses.get(), nullptr);
  EXPECT_TRUE(std::isnan(loss.values()[0]));
}

TEST_F(LongRowsTest, TheFirstOfEqualClassesIsThePrediction) {
  // Row 0: 7 and 70 are largest, in different lanes; row 1: 3 and 35, in one lane; row 2 is flat.
  const LabelledRows r{.rows = 3, .classes = 100};
  std::vector<float> x(300, 0.0F);
  x[7] = x[70] = 2.0F;
  x[100 + 3] = x[100 + 35] = 2.0F;
  const DeviceArray<float> logits(x);
  const DeviceArray<std::int32_t> correct(1);
  const auto count = [&](std::vector<std::int32_t> labels) {
    const DeviceArray<std::int32_t> of_rows(labels);
    kernels::cuda::launch_correct_count(r, logits.get(), of_rows.get(), correct.get(), nullptr);
    return correct.values()[0];
  };
  EXPECT_EQ(count({7, 3, 0}), 3);
  EXPECT_EQ(count({70, 35, 99}), 0);
  EXPECT_EQ(count({7, -100, 0}), 2);
}

struct Expected {
  std::vector<double> y, mean, var, dx, dgamma, dbeta;
};

Expected layer_norm(const LayerNormSizes& s, const std::vector<float>& x,
                    const std::vector<float>& dy, const std::vector<float>& gamma,
                    const std::vector<float>& beta) {
  const auto rows = static_cast<std::size_t>(s.rows);
  const auto columns = static_cast<std::size_t>(s.columns);
  const auto count = static_cast<double>(s.columns);
  Expected e;
  e.dgamma.resize(columns);
  e.dbeta.resize(columns);
  for (std::size_t m = 0; m < rows; ++m) {
    double mean = 0, var = 0, of_g = 0, of_product = 0;
    for (std::size_t k = 0; k < columns; ++k) mean += x[m * columns + k] / count;
    for (std::size_t k = 0; k < columns; ++k) {
      var += (x[m * columns + k] - mean) * (x[m * columns + k] - mean) / count;
    }
    const double inverse = 1.0 / std::sqrt(var + s.epsilon);
    const auto scaled = [&](std::size_t k) { return (x[m * columns + k] - mean) * inverse; };
    for (std::size_t k = 0; k < columns; ++k) {
      const double g = static_cast<double>(dy[m * columns + k]) * gamma[k];
      e.y.push_back(scaled(k) * gamma[k] + beta[k]);
      e.dgamma[k] += dy[m * columns + k] * scaled(k);
      e.dbeta[k] += dy[m * columns + k];
      of_g += g / count;
      of_product += g * scaled(k) / count;
    }
    for (std::size_t k = 0; k < columns; ++k) {
      const double g = static_cast<double>(dy[m * columns + k]) * gamma[k];
      e.dx.push_back((g - of_g - scaled(k) * of_product) * inverse);
    }
    e.mean.push_back(mean);
    e.var.push_back(var);
  }
  return e;
}

class LayerNormTest : public SingleKernelTest,
                      public testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(LayerNormTest, IsThatOfPlainLoopsAndWorksInPlace) {
  const LayerNormSizes s(GetParam().first, GetParam().second, 1e-5);
  const auto rows = static_cast<std::size_t>(s.rows);
  const auto columns = static_cast<std::size_t>(s.columns);
  const std::vector<float> x = fractions(rows * columns, 4, 5.0F);
  const std::vector<float> dy = fractions(rows * columns, 5);
  const std::vector<float> gamma = fractions(columns, 6);
  const std::vector<float> beta = fractions(columns, 7);
  const Expected e = layer_norm(s, x, dy, gamma, beta);

  const DeviceArray<float> of_x(x), y(x), dx(dy), of_gamma(gamma), of_beta(beta);
  const DeviceArray<float> mean(rows), var(rows), dgamma(columns), dbeta(columns);
  const DeviceArray<double> partial(s.scratch_bytes() / sizeof(double));
  kernels::cuda::launch_layer_norm(s, y.get(), of_gamma.get(), of_beta.get(), y.get(), mean.get(),
                                   var.get(), nullptr);
  kernels::cuda::launch_layer_norm_grad(s, of_x.get(), dx.get(), mean.get(), var.get(),
                                        of_gamma.get(), dx.get(), dgamma.get(), dbeta.get(),
                                        partial.get(), nullptr);
  expect_near(mean.values(), e.mean, 1e-6);
  expect_near(var.values(), e.var, 1e-6);
  expect_near(y.values(), e.y, 5e-6);
  expect_near(dx.values(), e.dx, 5e-6);
  expect_near(dgamma.values(), e.dgamma, 1e-5);
  expect_near(dbeta.values(), e.dbeta, 1e-5);
}

// A block a row; a warp a row, and rows in two parts.
INSTANTIATE_TEST_SUITE_P(All, LayerNormTest,
                         testing::Values(std::pair{3, 1025}, std::pair{600, 35}));

}  // namespace
}  // namespace reprise::test::cuda
