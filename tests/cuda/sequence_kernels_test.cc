// Kernels of dropout and embeddings by themselves, at sizes where the op cases do not go.

#include <gtest/gtest.h>
#include <random>

#include "graph/random.h"
#include "host/grid.h"
#include "host/touch_guard.h"
#include "kernels/cuda/dropout.h"
#include "kernels/cuda/embedding.h"
#include "tests/cuda/double/control.h"
#include "tests/cuda/double/device_array.h"

namespace reprise::test::cuda {
namespace {

using kernels::cuda::EmbeddingSizes;

class SequenceKernelsTest : public testing::TestWithParam<ThreadOrder> {
 protected:
  void SetUp() override {
    reset();
    set_thread_order(GetParam(), 5);
    set_touch_guard(true);
  }
  void TearDown() override {
    set_touch_guard(false);
    set_thread_order(ThreadOrder::kForward);
  }
};
INSTANTIATE_TEST_SUITE_P(Orders, SequenceKernelsTest,
                         testing::Values(ThreadOrder::kForward, ThreadOrder::kReverse,
                                         ThreadOrder::kRandom),
                         [](const auto& one) { return to_string(one.param); });

// Seed and step as they lie in the device's memory.
DeviceArray<unsigned long long> step_values(const graph::StepContext& step) {
  return DeviceArray<unsigned long long>({step.seed, step.step});
}

TEST_P(SequenceKernelsTest, DropoutKeepsWhatTheGeneratorSays) {
  for (const graph::StepContext step : {graph::StepContext{1, 0}, graph::StepContext{7, 12},
                                        graph::StepContext{0x1234567890abcdef, 0x50000000003}}) {
    const auto values = step_values(step);
    for (const std::size_t count : {1U, 4U, 1023U, 2050U}) {
      const DeviceArray<float> x(std::vector<float>(count, 2.0F)), y(count);
      launch_dropout({.threshold = graph::dropout_threshold(0.3), .stream = 9, .scale = 1.5F},
                     reinterpret_cast<const kernels::cuda::StepValues*>(values.get()), x.get(),
                     y.get(), static_cast<std::int64_t>(count), nullptr);
      const std::vector<float> dropped = y.values();
      for (std::size_t i = 0; i < count; ++i) {
        const bool kept = graph::random_bits(step, 9, i) >= graph::dropout_threshold(0.3);
        ASSERT_EQ(dropped[i], kept ? 3.0F : 0.0F) << "element " << i << " of " << count;
      }
    }
  }
}

struct Table {
  EmbeddingSizes s;
  std::vector<std::int32_t> ids;
  std::vector<float> rows;  // dy

  Table(const EmbeddingSizes& sizes, unsigned seed) : s(sizes) {
    std::mt19937 random(seed);
    for (std::int64_t i = 0; i < s.ids; ++i) {  // half of them name one row
      const auto id = static_cast<std::int32_t>(random() % static_cast<unsigned>(s.rows));
      ids.push_back(random() % 2 == 0 ? static_cast<std::int32_t>(s.rows / 2) : id);
    }
    for (std::int64_t i = 0; i < s.ids * s.width; ++i)
      rows.push_back(static_cast<float>(random()) / 4e9F - 0.5F);
  }

  // In the order of the ids, in f32: what the kernel promises to the bit.
  [[nodiscard]] std::vector<float> summed_onto(std::vector<float> sums) const {
    const auto width = static_cast<std::size_t>(s.width);
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::size_t k = 0; k < width; ++k)
        sums[static_cast<std::size_t>(ids[i]) * width + k] += rows[i * width + k];
    return sums;
  }
};

// Tiles of the kernel are 32 rows by 128 columns, ids come 512 at a time: sizes on both sides.
const EmbeddingSizes kSizes[] = {{.rows = 1, .width = 1, .ids = 1},
                                 {.rows = 32, .width = 128, .ids = 512},
                                 {.rows = 33, .width = 129, .ids = 513},
                                 {.rows = 100, .width = 5, .ids = 1300},
                                 {.rows = 7, .width = 260, .ids = 3}};

TEST_P(SequenceKernelsTest, EmbeddingGradSumsInTheOrderOfTheIds) {
  for (const EmbeddingSizes& s : kSizes) {
    const Table table(s, 11);
    const DeviceArray<std::int32_t> ids(table.ids);
    const DeviceArray<float> dy(table.rows);
    const auto elements = static_cast<std::size_t>(s.rows * s.width);
    const DeviceArray<float> fresh(std::vector<float>(elements, NAN));
    launch_embedding_grad(s, ids.get(), dy.get(), false, fresh.get(), nullptr);
    EXPECT_EQ(fresh.values(), table.summed_onto(std::vector<float>(elements, 0.0F)));
    const DeviceArray<float> running(std::vector<float>(elements, 0.25F));
    launch_embedding_grad(s, ids.get(), dy.get(), true, running.get(), nullptr);
    EXPECT_EQ(running.values(), table.summed_onto(std::vector<float>(elements, 0.25F)));
  }
}

TEST_P(SequenceKernelsTest, IdsOutOfRangeWriteNothingOutside) {
  const EmbeddingSizes s{.rows = 2, .width = 3, .ids = 4};
  const DeviceArray<std::int32_t> ids({1, -1, 2, 1 << 30});
  const DeviceArray<float> table({1, 2, 3, 4, 5, 6}), y(12), dtable(6);
  launch_embedding(s, table.get(), ids.get(), y.get(), nullptr);
  const std::vector<float> found = y.values();
  for (std::size_t i = 0; i < 12; ++i) {
    if (i < 3)
      EXPECT_EQ(found[i], static_cast<float>(4 + i));
    else
      EXPECT_TRUE(std::isnan(found[i])) << i;
  }
  const DeviceArray<float> dy(std::vector<float>(12, 1.0F));
  launch_embedding_grad(s, ids.get(), dy.get(), false, dtable.get(), nullptr);
  EXPECT_EQ(dtable.values(), (std::vector<float>{0, 0, 0, 1, 1, 1}));
}

}  // namespace
}  // namespace reprise::test::cuda
