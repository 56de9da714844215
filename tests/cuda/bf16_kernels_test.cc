// Kernels on bf16. They read bf16, calculate as their f32 form does, and round once: so what they
// store is, bit for bit, the rounded result of the f32 form on the same numbers. Rounding itself is
// checked against bit patterns made by hand.

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "base/error.h"
#include "kernels/cuda/batch_norm.h"
#include "kernels/cuda/broadcast.h"
#include "kernels/cuda/dropout.h"
#include "kernels/cuda/layer_norm.h"
#include "kernels/cuda/pointwise.h"
#include "kernels/cuda/pool.h"
#include "kernels/cuda/resample.h"
#include "kernels/cuda/shape_ops.h"
#include "platform/launch.h"
#include "tests/cuda/single_kernel.h"

namespace reprise::test::cuda {
namespace {

using kernels::cuda::BFloat16;
using kernels::cuda::Map2;
using kernels::cuda::NormSizes;
using kernels::cuda::SumPlan;
using kernels::cuda::SumSizes;

using Narrow = std::vector<BFloat16>;
using Wide = std::vector<float>;

float wide(BFloat16 x) {
  return std::bit_cast<float>(std::uint32_t{x.bits} << 16);
}
Wide wide(const Narrow& x) {
  Wide result;
  for (const BFloat16 each : x) result.push_back(wide(each));
  return result;
}

// The neighbour that is nearer; of two as near the one whose last bit is 0.
BFloat16 rounded(float x) {
  const auto below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
  const auto above = static_cast<std::uint16_t>(below + 1);
  const double down = std::abs(static_cast<double>(x) - static_cast<double>(wide(BFloat16{below})));
  const double up = std::abs(static_cast<double>(wide(BFloat16{above})) - static_cast<double>(x));
  if (down == up) return {below % 2 == 0 ? below : above};
  return {down < up ? below : above};
}
Narrow rounded(const Wide& x) {
  Narrow result;
  for (const float each : x) result.push_back(rounded(each));
  return result;
}

// Numbers that bf16 holds exactly.
Narrow narrow_fractions(std::size_t count, unsigned seed, float shift = 0) {
  return rounded(fractions(count, seed, shift));
}

std::vector<std::uint16_t> bits_of(const Narrow& x) {
  std::vector<std::uint16_t> bits;
  for (const BFloat16 each : x) bits.push_back(each.bits);
  return bits;
}
void expect_rounded(const DeviceArray<BFloat16>& found, const DeviceArray<float>& f32) {
  EXPECT_EQ(bits_of(found.values()), bits_of(rounded(f32.values())));
}

// The same numbers on the device, in both forms.
struct Both {
  explicit Both(const Narrow& values) : narrow(values), wide(test::cuda::wide(values)) {}
  explicit Both(std::size_t count) : narrow(count), wide(count) {}
  void expect_rounded() const { test::cuda::expect_rounded(narrow, wide); }
  DeviceArray<BFloat16> narrow;
  DeviceArray<float> wide;
};

class BFloat16Test : public SingleKernelTest {};

struct Pattern {
  const char* what;
  std::uint32_t f32;
  std::uint16_t bf16;
};
constexpr Pattern kPatterns[] = {
    {"one", 0x3F800000, 0x3F80},
    {"minus zero", 0x80000000, 0x8000},
    {"half way, the even neighbour below", 0x3F808000, 0x3F80},
    {"half way, the even neighbour above", 0x3F818000, 0x3F82},
    {"a little more than half way", 0x3F808001, 0x3F81},
    {"a little less than half way", 0x3F817FFF, 0x3F81},
    {"half way, negative", 0xBF818000, 0xBF82},
    {"carried into the exponent", 0x3FFFFFFF, 0x4000},
    {"the smallest subnormal of bf16", 0x00010000, 0x0001},
    {"half of the smallest subnormal", 0x00008000, 0x0000},
    {"more than half of the smallest subnormal", 0x00008001, 0x0001},
    {"a subnormal that becomes normal", 0x007FFFFF, 0x0080},
    {"the largest bf16", 0x7F7F0000, 0x7F7F},
    {"just not infinite", 0x7F7F7FFF, 0x7F7F},
    {"beyond the largest", 0x7F7F8000, 0x7F80},
    {"beyond the largest, negative", 0xFF7FFFFF, 0xFF80},
    {"infinity", 0x7F800000, 0x7F80},
};

TEST_F(BFloat16Test, ACastRoundsToTheNearestAndTiesToEven) {
  Wide from;
  for (const Pattern& p : kPatterns) from.push_back(std::bit_cast<float>(p.f32));
  from.push_back(std::numeric_limits<float>::quiet_NaN());
  from.push_back(std::bit_cast<float>(0x7F800001U));  // a NaN whose upper half is infinity's
  const DeviceArray<float> x(from);
  const DeviceArray<BFloat16> y(from.size());
  kernels::cuda::launch_cast(x.get(), y.get(), static_cast<std::int64_t>(from.size()), nullptr);
  const Narrow found = y.values();
  std::size_t i = 0;
  for (const Pattern& p : kPatterns) EXPECT_EQ(found[i++].bits, p.bf16) << p.what;
  EXPECT_TRUE(std::isnan(wide(found[i])));
  EXPECT_TRUE(std::isnan(wide(found[i + 1])));
}

TEST_F(BFloat16Test, ACastToF32ChangesNothingWhateverTheRestByEight) {
  for (const std::size_t count : {1U, 7U, 8U, 9U, 2047U, 4104U}) {
    const Narrow x = narrow_fractions(count, 1);
    const DeviceArray<BFloat16> from(x), back(count);
    const DeviceArray<float> to(count);
    const auto n = static_cast<std::int64_t>(count);
    kernels::cuda::launch_cast(from.get(), to.get(), n, nullptr);
    kernels::cuda::launch_cast(to.get(), back.get(), n, nullptr);
    EXPECT_EQ(to.values(), wide(x)) << count;
    EXPECT_EQ(bits_of(back.values()), bits_of(x)) << count;
  }
}

TEST_F(BFloat16Test, MapsRoundTheF32FormOnceAndWorkInPlace) {
  constexpr std::size_t kCount = 2051;  // 256 eights and 3
  const Narrow a = narrow_fractions(kCount, 1), b = narrow_fractions(kCount, 2);
  constexpr auto kN = static_cast<std::int64_t>(kCount);
  for (const Map2 map :
       {Map2::kReluGrad, Map2::kGeluGrad, Map2::kTanhGrad, Map2::kAdd, Map2::kMul}) {
    const Both x(a), y(b);
    kernels::cuda::launch_map2(map, x.narrow.get(), y.narrow.get(), x.narrow.get(), kN, nullptr);
    kernels::cuda::launch_map2(map, x.wide.get(), y.wide.get(), x.wide.get(), kN, nullptr);
    x.expect_rounded();
  }
  const Both x(a), of_relu(kCount), dropped(kCount);
  kernels::cuda::launch_map(kernels::cuda::Map::kGelu, x.narrow.get(), of_relu.narrow.get(), kN,
                            nullptr);
  kernels::cuda::launch_map(kernels::cuda::Map::kGelu, x.wide.get(), of_relu.wide.get(), kN,
                            nullptr);
  of_relu.expect_rounded();
  const DeviceArray<kernels::cuda::StepValues> step(
      std::vector<kernels::cuda::StepValues>{{.seed = 5, .step = 6, .scalars = {}}});
  const kernels::cuda::Dropping d{.threshold = 1U << 30, .stream = 2, .scale = 4.0F / 3.0F};
  kernels::cuda::launch_dropout(d, step.get(), x.narrow.get(), dropped.narrow.get(), kN, nullptr);
  kernels::cuda::launch_dropout(d, step.get(), x.wide.get(), dropped.wide.get(), kN, nullptr);
  dropped.expect_rounded();
}

TEST_F(BFloat16Test, ABiasIsAddedInF32) {
  const Both y(narrow_fractions(6 * 35, 1));
  const DeviceArray<float> bias(fractions(3, 2));
  const auto add = [&](auto* of) {
    kernels::cuda::launch_add_channels(bias.get(), 3, 35, of, of, 6 * 35, nullptr);
  };
  add(y.narrow.get());
  add(y.wide.get());
  y.expect_rounded();
  // What has more bits than bf16 is rounded once, behind the sum.
  const DeviceArray<float> product(fractions(21, 3)), sum(21);
  const DeviceArray<BFloat16> rounded_sum(21);
  kernels::cuda::launch_add_row(bias.get(), 3, product.get(), sum.get(), 21, nullptr);
  kernels::cuda::launch_add_row(bias.get(), 3, product.get(), rounded_sum.get(), 21, nullptr);
  expect_rounded(rounded_sum, sum);
}

TEST_F(BFloat16Test, RowsAreCopiedInEightsWhereTheyAreAndOneByOne) {
  // Rows of 16 from 24, and of 9 from 13.
  for (const std::int64_t width : {16, 9}) {
    const kernels::cuda::RowCopy c{
        .rows = 3, .width = width, .from_stride = width * 3 / 2, .to_stride = width};
    const Narrow x = narrow_fractions(static_cast<std::size_t>(3 * c.from_stride), 3);
    const DeviceArray<BFloat16> from(x), to(static_cast<std::size_t>(3 * width));
    kernels::cuda::launch_copy_rows(c, from.get(), to.get(), nullptr);
    const Narrow found = to.values();
    for (std::int64_t row = 0; row < 3; ++row)
      for (std::int64_t i = 0; i < width; ++i)
        EXPECT_EQ(found[static_cast<std::size_t>(row * width + i)].bits,
                  x[static_cast<std::size_t>(row * c.from_stride + i)].bits);
  }
}

class BFloat16SumsTest : public SingleKernelTest, public testing::WithParamInterface<SumSizes> {};

TEST_P(BFloat16SumsTest, NormsAndSumsAreThoseOfTheF32FormRoundedWhereTheyAreImages) {
  const SumSizes sizes = GetParam();
  const NormSizes s{.x = sizes};
  const SumPlan plan(sizes);
  const auto channels = static_cast<std::size_t>(sizes.channels);
  const std::size_t count = channels * static_cast<std::size_t>(sizes.terms());
  const Both x(narrow_fractions(count, 8, 3.0F)), dy(narrow_fractions(count, 9)), y(count),
      dx(count);
  const DeviceArray<float> gamma(fractions(channels, 10)), beta(fractions(channels, 11)),
      coefficients(kernels::cuda::kNormCoefficients * channels);
  const DeviceArray<double> partial(plan.scratch_bytes(2) / sizeof(double));
  struct Statistics {
    explicit Statistics(std::size_t n) : mean(n), var(n), dgamma(n), dbeta(n), sum(n) {}
    DeviceArray<float> mean, var, dgamma, dbeta, sum;
  };
  const auto run = [&]<class T>(const DeviceArray<T>& of_x, const DeviceArray<T>& of_dy,
                                const DeviceArray<T>& of_y, const DeviceArray<T>& of_dx) {
    const Statistics t(channels);
    kernels::cuda::launch_batch_norm(s, plan, of_x.get(), gamma.get(), beta.get(), of_y.get(),
                                     t.mean.get(), t.var.get(), partial.get(), coefficients.get(),
                                     nullptr);
    kernels::cuda::launch_batch_norm_grad(
        s, plan, of_x.get(), of_dy.get(), t.mean.get(), t.var.get(), gamma.get(), of_dx.get(),
        t.dgamma.get(), t.dbeta.get(), partial.get(), coefficients.get(), nullptr);
    kernels::cuda::launch_sums(plan, 0.5F, of_dy.get(), nullptr, t.sum.get(), partial.get(),
                               nullptr);
    return std::vector<Wide>{t.mean.values(), t.var.values(), t.dgamma.values(), t.dbeta.values(),
                             t.sum.values()};
  };
  EXPECT_EQ(run(x.narrow, dy.narrow, y.narrow, dx.narrow), run(x.wide, dy.wide, y.wide, dx.wide));
  y.expect_rounded();
  dx.expect_rounded();
}

INSTANTIATE_TEST_SUITE_P(
    All, BFloat16SumsTest,
    testing::Values(SumSizes{.outer = 6, .channels = 3, .inner = 16},     // fours, a warp
                    SumSizes{.outer = 2, .channels = 2, .inner = 4'098},  // two parts of a block
                    SumSizes{.outer = 3, .channels = 2, .inner = 3'000},  // fours, two parts
                    SumSizes{.outer = 40, .channels = 33, .inner = 1}));  // columns

TEST_F(BFloat16Test, PoolingIsThatOfTheF32FormRoundedOnce) {
  const kernels::cuda::PoolSizes s{.images = 5,
                                   .x_height = 9,
                                   .x_width = 7,
                                   .y_height = 5,
                                   .y_width = 4,
                                   .kernel = {3, 3},
                                   .stride = {2, 2},
                                   .padding = {1, 1}};
  const auto x_count = static_cast<std::size_t>(s.x_count());
  const auto y_count = static_cast<std::size_t>(s.y_count());
  const Both x(narrow_fractions(x_count, 1)), dy(narrow_fractions(y_count, 2)), largest(y_count),
      mean(y_count), dx(x_count), dx_of_mean(x_count);
  const auto run = [&]<class T>(DeviceArray<T> Both::*form) {
    const DeviceArray<std::uint8_t> indices(y_count);
    kernels::cuda::launch_max_pool(s, (x.*form).get(), (largest.*form).get(), indices.get(),
                                   nullptr);
    kernels::cuda::launch_max_pool_grad(s, (dy.*form).get(), indices.get(), (dx.*form).get(),
                                        nullptr);
    kernels::cuda::launch_avg_pool(s, (x.*form).get(), (mean.*form).get(), nullptr);
    kernels::cuda::launch_avg_pool_grad(s, (dy.*form).get(), (dx_of_mean.*form).get(), nullptr);
    return indices.values();
  };
  EXPECT_EQ(run(&Both::narrow), run(&Both::wide));
  for (const Both* each : {&largest, &mean, &dx, &dx_of_mean}) each->expect_rounded();
}

TEST_F(BFloat16Test, ResamplingIsThatOfTheF32FormRoundedOnce) {
  const kernels::cuda::UpsampleSizes s{.images = 2, .height = 3, .width = 5, .factor = 2};
  const Both small(narrow_fractions(30, 1)), large(narrow_fractions(120, 2)), up(120), down(30),
      repeated(120);
  const auto run = [&]<class T>(DeviceArray<T> Both::*form) {
    kernels::cuda::launch_upsample(s, (small.*form).get(), (up.*form).get(), nullptr);
    kernels::cuda::launch_upsample_grad(s, (large.*form).get(), (down.*form).get(), nullptr);
    kernels::cuda::launch_repeat(4, 0.3F, (small.*form).get(), (repeated.*form).get(), 120,
                                 nullptr);
  };
  run(&Both::narrow);
  run(&Both::wide);
  for (const Both* each : {&up, &down, &repeated}) each->expect_rounded();
}

TEST_F(BFloat16Test, LayerNormIsThatOfTheF32FormRoundedOnce) {
  for (const std::int64_t columns : {33, 1'030}) {  // a warp a row, a block a row
    const kernels::cuda::LayerNormSizes s(5, columns, 1e-5);
    const auto count = static_cast<std::size_t>(5 * columns);
    const auto width = static_cast<std::size_t>(columns);
    const Both x(narrow_fractions(count, 1)), dy(narrow_fractions(count, 2)), y(count), dx(count);
    const DeviceArray<float> gamma(fractions(width, 3)), beta(fractions(width, 4));
    const DeviceArray<double> partial(s.scratch_bytes() / sizeof(double));
    const auto run = [&]<class T>(DeviceArray<T> Both::*form) {
      const DeviceArray<float> mean(5), var(5), dgamma(width), dbeta(width);
      kernels::cuda::launch_layer_norm(s, (x.*form).get(), gamma.get(), beta.get(), (y.*form).get(),
                                       mean.get(), var.get(), nullptr);
      kernels::cuda::launch_layer_norm_grad(s, (x.*form).get(), (dy.*form).get(), mean.get(),
                                            var.get(), gamma.get(), (dx.*form).get(), dgamma.get(),
                                            dbeta.get(), partial.get(), nullptr);
      return std::vector<Wide>{mean.values(), var.values(), dgamma.values(), dbeta.values()};
    };
    EXPECT_EQ(run(&Both::narrow), run(&Both::wide));
    y.expect_rounded();
    dx.expect_rounded();
  }
}

// Planted: a kernel that takes the elements of a bf16 array for floats, though its launch says
// how many of which there are.
__global__ void four_bytes_of_two_kernel(const BFloat16* x, BFloat16* y, int count) {
  const auto i = static_cast<int>(threadIdx.x);
  if (i < count) reinterpret_cast<float*>(y)[i] = 2 * reinterpret_cast<const float*>(x)[i];
}

TEST_F(BFloat16Test, AKernelThatTakesBFloat16ForFloatIsReported) {
  // Room behind the bf16 arrays, as other values of an arena are.
  const DeviceArray<BFloat16> x(Narrow(64, BFloat16{0x3F80})), y(Narrow(64, BFloat16{0}));
  const CollectedFaults faults;
  try {  // it may run at once, or when something waits
    kernels::cuda::launch("four_bytes_of_two", four_bytes_of_two_kernel, dim3(1), dim3(32), nullptr,
                          {kernels::cuda::reads(x.get(), 32), kernels::cuda::writes(y.get(), 32)},
                          x.get(), y.get(), 32);
  } catch (const base::Error&) {
  }
  (void)cudaDeviceSynchronize();
  ASSERT_FALSE(faults.all().empty());
  EXPECT_NE(faults.all()[0].find("four_bytes_of_two"), std::string::npos) << faults.all()[0];
  EXPECT_NE(faults.all()[0].find("which it did not declare as written"), std::string::npos)
      << faults.all()[0];
}

}  // namespace
}  // namespace reprise::test::cuda
