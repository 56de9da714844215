#pragma once

// For tests of single kernels: a fresh double of CUDA, and numbers.

#include <cstddef>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "double/control.h"
#include "host/touch_guard.h"
#include "tests/cuda/double/device_array.h"

namespace reprise::test::cuda {

// A fresh double whose kernels may touch only what they declare.
class SingleKernelTest : public testing::Test {
 protected:
  SingleKernelTest() {
    reset();
    set_touch_guard(true);
  }
  ~SingleKernelTest() override {
    set_touch_guard(false);
    reset();
  }
};

// Whole numbers in [-4, 4]: their sums and products are exact in whatever order.
[[nodiscard]] inline std::vector<float> whole_numbers(std::size_t count, unsigned seed) {
  std::mt19937 draw(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(draw() % 9) - 4);
  return values;
}

// In [-1, 1), plus `shift`.
[[nodiscard]] inline std::vector<float> fractions(std::size_t count, unsigned seed,
                                                  float shift = 0) {
  std::mt19937 draw(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(draw()) / 2147483648.0F - 1.0F + shift;
  return values;
}

inline void expect_near(const std::vector<float>& found, const std::vector<double>& expected,
                        double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], tolerance) << "element " << i;
  }
}

}  // namespace reprise::test::cuda
