// Updates of many arrays in few launches, against the plain formulas.

#include "kernels/cuda/update_batch.h"

#include <cmath>
#include <gtest/gtest.h>
#include <optional>
#include <vector>

#include "tests/cuda/single_kernel.h"

namespace reprise::test::cuda {
namespace {

using namespace kernels::cuda;

// Arrays one behind the other in one allocation, each at a multiple of 16 floats.
class Arena {
 public:
  explicit Arena(const std::vector<std::size_t>& counts) {
    std::size_t at = 0;
    for (const std::size_t count : counts) {
      begin_.push_back(at);
      at += (count + 15) / 16 * 16;
    }
    host_ = fractions(at, 1);
    device_.emplace(host_);
  }
  [[nodiscard]] float* device(std::size_t array) const { return device_->get() + begin_[array]; }
  [[nodiscard]] float* host(std::size_t array) { return host_.data() + begin_[array]; }
  // What the host's loops have made against what the device's kernels have.
  void expect_equal() const {
    const std::vector<float> found = device_->values();
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], host_[i], 1e-6) << "element " << i;
    }
  }

 private:
  std::vector<std::size_t> begin_;
  std::vector<float> host_;
  std::optional<DeviceArray<float>> device_;
};

class UpdateBatchTest : public SingleKernelTest {
 protected:
  UpdateBatchTest() { batch_.reserve(200); }

  // p, g and m of array k are the arrays 3 k, 3 k + 1 and 3 k + 2 of the arena.
  void add_sgd(const SgdSettings& settings, const Arena& arena, std::size_t k, std::size_t count) {
    batch_.add(settings, rate_.get(), nullptr,
               {.p = arena.device(3 * k),
                .g = arena.device(3 * k + 1),
                .m = arena.device(3 * k + 2),
                .p_out = arena.device(3 * k),
                .m_out = arena.device(3 * k + 2),
                .count = static_cast<std::int64_t>(count)},
               nullptr);
  }
  static void sgd_on_host(const SgdSettings& settings, Arena& arena, std::size_t k,
                          std::size_t count) {
    float* p = arena.host(3 * k);
    const float* g = arena.host(3 * k + 1);
    float* m = arena.host(3 * k + 2);
    for (std::size_t i = 0; i < count; ++i) {
      m[i] = settings.momentum * m[i] + g[i] + settings.weight_decay * p[i];
      p[i] -= 0.5F * m[i];
    }
  }
  [[nodiscard]] static std::size_t launches() { return counts().kernels; }

  const DeviceArray<double> rate_{std::vector<double>{0.5, 1.25, 0.9}};
  UpdateBatch batch_;
};

std::vector<std::size_t> times(const std::vector<std::size_t>& counts, std::size_t arrays) {
  std::vector<std::size_t> all;
  for (const std::size_t count : counts) all.insert(all.end(), arrays, count);
  return all;
}

// 4,096 elements are what one block works on; a table has room for 48 arrays.
TEST_F(UpdateBatchTest, ArraysOfAllSizesAreUpdatedInAsFewLaunchesAsTheirTablesTake) {
  std::vector<std::size_t> counts = {1, 4095, 4096, 4097, 10'000, 64, 3};
  while (counts.size() < 100) counts.push_back(counts.size());
  Arena arena(times(counts, 3));
  const SgdSettings settings{.momentum = 0.9F, .weight_decay = 0.1F};
  clear_counts();
  for (std::size_t k = 0; k < counts.size(); ++k) {
    add_sgd(settings, arena, k, counts[k]);
    sgd_on_host(settings, arena, k, counts[k]);
  }
  must(cudaDeviceSynchronize());
  EXPECT_EQ(launches(), 0U);
  batch_.flush(nullptr);
  arena.expect_equal();
  EXPECT_EQ(launches(), 3U);  // 48 + 48 + 4
  batch_.flush(nullptr);
  must(cudaDeviceSynchronize());
  EXPECT_EQ(launches(), 3U);
}

TEST_F(UpdateBatchTest, OtherSettingsAreAnotherLaunch) {
  const std::vector<std::size_t> counts = {10, 20, 30};
  Arena arena(times(counts, 3));
  const SgdSettings heavy{.momentum = 0.9F}, light{.momentum = 0.5F};
  clear_counts();
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const SgdSettings& settings = k == 1 ? light : heavy;
    add_sgd(settings, arena, k, counts[k]);
    sgd_on_host(settings, arena, k, counts[k]);
  }
  batch_.flush(nullptr);
  arena.expect_equal();
  EXPECT_EQ(launches(), 3U);
}

TEST_F(UpdateBatchTest, EmptyArraysAndAnEmptyBatchStartNothing) {
  Arena arena({16, 16, 16});
  clear_counts();
  add_sgd({.momentum = 0.9F}, arena, 0, 0);
  batch_.flush(nullptr);
  batch_.flush(nullptr);
  add_sgd({.momentum = 0.9F}, arena, 0, 16);
  batch_.drop();
  batch_.flush(nullptr);
  arena.expect_equal();
  EXPECT_EQ(launches(), 0U);
}

TEST_F(UpdateBatchTest, AdamUpdatesFourArraysEach) {
  const std::vector<std::size_t> counts = {5000, 7, 4096};
  Arena arena(times(counts, 4));
  const AdamSettings settings{.beta1 = 0.9F,
                              .beta2 = 0.5F,
                              .rest1 = 0.1F,
                              .rest2 = 0.5F,
                              .epsilon = 0.25F,
                              .coupled_decay = 0.1F,
                              .guard = {}};
  clear_counts();
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const std::size_t at = 4 * k;
    for (std::size_t i = 0; i < counts[k]; ++i) {  // second moments are no less than 0
      arena.host(at + 3)[i] = std::fabs(arena.host(at + 3)[i]);
    }
    must(cudaMemcpy(arena.device(at + 3), arena.host(at + 3), counts[k] * sizeof(float),
                    cudaMemcpyHostToDevice));
    batch_.add(settings, rate_.get(), {.rate = 0, .root_correction = 1, .shrink = 2}, nullptr,
               {.p = arena.device(at),
                .g = arena.device(at + 1),
                .m = arena.device(at + 2),
                .v = arena.device(at + 3),
                .p_out = arena.device(at),
                .m_out = arena.device(at + 2),
                .v_out = arena.device(at + 3),
                .count = static_cast<std::int64_t>(counts[k])},
               nullptr);
    for (std::size_t i = 0; i < counts[k]; ++i) {
      float& p = arena.host(at)[i];
      float& m = arena.host(at + 2)[i];
      float& v = arena.host(at + 3)[i];
      const float g = arena.host(at + 1)[i] + 0.1F * p;
      m = 0.9F * m + 0.1F * g;
      v = 0.5F * v + 0.5F * g * g;
      p = 0.9F * p - 0.5F * m / (std::sqrt(v) * 1.25F + 0.25F);
    }
  }
  batch_.flush(nullptr);
  arena.expect_equal();
  EXPECT_EQ(launches(), 1U);
}

}  // namespace
}  // namespace reprise::test::cuda
