// Maps over arrays whose sizes are and are not multiples of four, and batch norm on images that
// are large enough for sums in parts.

#include <cmath>
#include <gtest/gtest.h>

#include "kernels/cuda/batch_norm.h"
#include "kernels/cuda/pointwise.h"
#include "kernels/cuda/shape_ops.h"
#include "tests/cuda/single_kernel.h"

namespace reprise::test::cuda {
namespace {

using kernels::cuda::NormSizes;
using kernels::cuda::RowCopy;
using kernels::cuda::SumPlan;
using kernels::cuda::SumSizes;

class MapsTest : public SingleKernelTest {};

TEST_F(MapsTest, EveryElementIsMappedWhateverTheRestByFour) {
  for (const std::size_t count : {1U, 3U, 4U, 1023U, 1026U, 2048U}) {
    const std::vector<float> a = whole_numbers(count, 1);
    const std::vector<float> b = whole_numbers(count, 2);
    const auto n = static_cast<std::int64_t>(count);
    const DeviceArray<float> in_place(a), other(b);
    const DeviceArray<std::int32_t> positive(count);
    kernels::cuda::launch_positive(in_place.get(), positive.get(), n, nullptr);
    kernels::cuda::launch_map2(kernels::cuda::Map2::kMul, in_place.get(), other.get(),
                               in_place.get(), n, nullptr);
    const std::vector<float> product = in_place.values();
    const std::vector<std::int32_t> sign = positive.values();
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(product[i], a[i] * b[i]) << i << " of " << count;
      ASSERT_EQ(sign[i], a[i] > 0 ? 1 : 0) << i << " of " << count;
    }
  }
}

TEST_F(MapsTest, RowsAreCopiedOneByOneAndInFours) {
  // 3 rows of 10 from column 3 of 17; of 8 from column 4 of 16, which are quads.
  struct Case {
    RowCopy copy;
    std::size_t begin;
  };
  for (const Case& c : {Case{{.rows = 3, .width = 10, .from_stride = 17, .to_stride = 12}, 3},
                        Case{{.rows = 3, .width = 8, .from_stride = 16, .to_stride = 12}, 4}}) {
    std::vector<std::int32_t> from(60);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::int32_t>(i);
    const DeviceArray<std::int32_t> x(from), y(std::vector<std::int32_t>(36, -1));
    kernels::cuda::launch_copy_rows(c.copy, x.get() + c.begin, y.get(), nullptr);
    const std::vector<std::int32_t> to = y.values();
    for (int row = 0; row < 3; ++row) {
      for (int i = 0; i < 12; ++i) {
        const auto source = static_cast<int>(c.begin) + row * static_cast<int>(c.copy.from_stride);
        EXPECT_EQ(to[static_cast<std::size_t>(12 * row + i)], i < c.copy.width ? source + i : -1);
      }
    }
  }
}

class BatchNormTest : public SingleKernelTest, public testing::WithParamInterface<SumSizes> {};

TEST_P(BatchNormTest, IsThatOfPlainLoopsAndWorksInPlace) {
  const SumSizes sizes = GetParam();
  const NormSizes s{.x = sizes, .epsilon = 1e-5};
  const SumPlan plan(sizes);
  const auto channels = static_cast<std::size_t>(sizes.channels);
  const auto inner = static_cast<std::size_t>(sizes.inner);
  const std::size_t count = channels * static_cast<std::size_t>(sizes.terms());
  const auto channel = [&](std::size_t i) { return i / inner % channels; };
  const auto terms = static_cast<double>(sizes.terms());
  const std::vector<float> x = fractions(count, 8, 30.0F);
  const std::vector<float> dy = fractions(count, 9);
  const std::vector<float> gamma = fractions(channels, 10);
  const std::vector<float> beta = fractions(channels, 11);

  std::vector<double> mean(channels), var(channels), dgamma(channels), dbeta(channels);
  for (std::size_t i = 0; i < count; ++i) mean[channel(i)] += x[i] / terms;
  for (std::size_t i = 0; i < count; ++i) {
    const double centred = x[i] - mean[channel(i)];
    var[channel(i)] += centred * centred / terms;
  }
  const auto inverse = [&](std::size_t i) { return 1.0 / std::sqrt(var[channel(i)] + 1e-5); };
  const auto scaled = [&](std::size_t i) { return (x[i] - mean[channel(i)]) * inverse(i); };
  for (std::size_t i = 0; i < count; ++i) {
    dgamma[channel(i)] += dy[i] * scaled(i);
    dbeta[channel(i)] += dy[i];
  }
  std::vector<double> y(count), dx(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t c = channel(i);
    y[i] = scaled(i) * gamma[c] + beta[c];
    dx[i] = gamma[c] * inverse(i) * (dy[i] - dbeta[c] / terms - scaled(i) * dgamma[c] / terms);
  }

  const DeviceArray<float> of_x(x), in_place(x), dx_in_place(dy), of_gamma(gamma), of_beta(beta);
  const DeviceArray<float> of_mean(channels), of_var(channels), of_dgamma(channels),
      of_dbeta(channels), coefficients(kernels::cuda::kNormCoefficients * channels);
  const DeviceArray<double> partial(plan.scratch_bytes(2) / sizeof(double));
  kernels::cuda::launch_batch_norm(s, plan, in_place.get(), of_gamma.get(), of_beta.get(),
                                   in_place.get(), of_mean.get(), of_var.get(), partial.get(),
                                   coefficients.get(), nullptr);
  kernels::cuda::launch_batch_norm_grad(s, plan, of_x.get(), dx_in_place.get(), of_mean.get(),
                                        of_var.get(), of_gamma.get(), dx_in_place.get(),
                                        of_dgamma.get(), of_dbeta.get(), partial.get(),
                                        coefficients.get(), nullptr);
  expect_near(of_mean.values(), mean, 3e-6);
  expect_near(of_var.values(), var, 1e-6);
  expect_near(in_place.values(), y, 1e-5);
  expect_near(dx_in_place.values(), dx, 1e-5);
  expect_near(of_dgamma.values(), dgamma, 1e-5 * std::sqrt(terms));
  expect_near(of_dbeta.values(), dbeta, 1e-5 * std::sqrt(terms));
}

INSTANTIATE_TEST_SUITE_P(
    All, BatchNormTest,
    testing::Values(SumSizes{.outer = 6, .channels = 3, .inner = 16},      // quads, a warp
                    SumSizes{.outer = 2, .channels = 2, .inner = 4'098},   // two parts of a block
                    SumSizes{.outer = 3, .channels = 2, .inner = 3'000},   // quads, two parts
                    SumSizes{.outer = 520, .channels = 33, .inner = 1}));  // two parts of columns

}  // namespace
}  // namespace reprise::test::cuda
