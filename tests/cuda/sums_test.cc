// Sums over axes: every way in which their terms are dealt out to threads and parts. Whole numbers,
// so that sums are exact.

#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "kernels/cuda/channel_sums.h"
#include "kernels/cuda/update.h"
#include "tests/cuda/single_kernel.h"

namespace reprise::test::cuda {
namespace {

using kernels::cuda::SumPlan;
using kernels::cuda::SumSizes;
using Group = SumPlan::Group;

struct SumCase {
  std::string name;
  SumSizes sizes;
  Group group;
  std::int64_t parts;
  friend void PrintTo(const SumCase& c, std::ostream* out) { *out << c.name; }
};

class SumsTest : public SingleKernelTest, public testing::WithParamInterface<SumCase> {};

TEST_P(SumsTest, AreThoseOfPlainLoops) {
  const SumCase& c = GetParam();
  const SumSizes& s = c.sizes;
  const SumPlan plan(s);
  EXPECT_EQ(plan.group, c.group);
  EXPECT_EQ(plan.parts, c.parts);

  const auto sums = static_cast<std::size_t>(s.sums());
  const std::vector<float> x = whole_numbers(sums * static_cast<std::size_t>(s.terms()), 1);
  const std::vector<float> start = whole_numbers(sums, 2);
  std::vector<float> expected = start;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t channel = at / s.inner % s.channels;
    const std::int64_t batch = at / s.inner / s.channels / s.outer;
    expected[static_cast<std::size_t>(batch * s.channels + channel)] += 0.5F * x[i];
  }

  const DeviceArray<float> of_x(x);
  const DeviceArray<float> y(start);
  const DeviceArray<double> scratch(plan.scratch_bytes() / sizeof(double));
  kernels::cuda::launch_sums(plan, 0.5F, of_x.get(), y.get(), y.get(), scratch.get(), nullptr);
  EXPECT_EQ(y.values(), expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, SumsTest,
    testing::Values(
        SumCase{"few_columns", {.outer = 5, .channels = 3}, Group::kColumn, 1},
        // 600 / 256 parts; the second and last tile of 32 columns is not full
        SumCase{"columns_in_parts", {.outer = 600, .channels = 33}, Group::kColumn, 2},
        SumCase{"columns_of_a_batch", {.batch = 3, .outer = 9, .channels = 5}, Group::kColumn, 1},
        SumCase{
            "short_rows", {.batch = 2, .outer = 4, .channels = 3, .inner = 7}, Group::kColumn, 1},
        SumCase{"a_warp_a_row", {.channels = 9, .inner = 100}, Group::kWarp, 1},
        SumCase{"a_warp_a_channel",
                {.batch = 2, .outer = 3, .channels = 5, .inner = 8},
                Group::kWarp,
                1},
        SumCase{"a_block_a_channel", {.outer = 3, .channels = 2, .inner = 500}, Group::kBlock, 1},
        // 8,200 / 4,096 parts; the second begins within a row of 1,025
        SumCase{"a_channel_in_parts", {.outer = 8, .channels = 2, .inner = 1025}, Group::kBlock, 2},
        SumCase{"quads_in_parts", {.outer = 9, .channels = 2, .inner = 1000}, Group::kBlock, 2},
        SumCase{"one_of_all", {.inner = 12'289}, Group::kBlock, 3},
        SumCase{"of_nothing", {.outer = 0, .channels = 4, .inner = 3}, Group::kColumn, 1},
        SumCase{"no_sums", {.outer = 3, .channels = 0}, Group::kColumn, 1}),
    [](const auto& param) { return param.param.name; });

class GlobalNormTest : public SingleKernelTest {};

TEST_F(GlobalNormTest, AddsUpManyArraysInGroups) {
  // 17 arrays are three groups. Array k has k ones, the last one 40,000 of them in two parts:
  // 0 + 1 + ... + 15 + 40,000 = 40,120.
  std::vector<std::unique_ptr<DeviceArray<float>>> arrays;
  std::vector<std::int64_t> counts;
  std::int64_t parts = 0;
  for (int k = 0; k < 17; ++k) {
    counts.push_back(k < 16 ? k : 40'000);
    arrays.push_back(std::make_unique<DeviceArray<float>>(
        std::vector<float>(static_cast<std::size_t>(counts.back()), 1.0F)));
    parts += kernels::cuda::norm_parts(counts.back());
  }
  EXPECT_EQ(parts, 15 + 2);

  const DeviceArray<double> partial(static_cast<std::size_t>(parts));
  const DeviceArray<float> norm(1);
  double* next = partial.get();
  for (std::size_t group = 0; group < 3; ++group) {
    kernels::cuda::NormArrays n{};
    for (std::size_t k = 0; k < kernels::cuda::kNormArrays; ++k) {
      const std::size_t i = group * kernels::cuda::kNormArrays + k;
      n.x[k] = arrays[i < 17 ? i : 0]->get();
      n.count[k] = i < 17 ? counts[i] : 0;
    }
    kernels::cuda::launch_sums_of_squares(n, next, nullptr);
    for (const std::int64_t count : n.count) next += kernels::cuda::norm_parts(count);
  }
  kernels::cuda::launch_root_of_sum(partial.get(), parts, norm.get(), nullptr);
  EXPECT_FLOAT_EQ(norm.values()[0], 200.29978F);  // sqrt(40120) = 200.299775...
}

}  // namespace
}  // namespace reprise::test::cuda
