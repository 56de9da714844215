#pragma once

// Types that a value's numbers are stored in. Kernels read them as float, calculate in float or
// double, and round once to what they store (element.cuh); the functions that launch them are
// templates over the type, instantiated beside the kernel.

#include <cstdint>

namespace reprise::kernels::cuda {

// The upper half of a float.
struct BFloat16 {
  std::uint16_t bits = 0;
  friend bool operator==(const BFloat16&, const BFloat16&) = default;
};

}  // namespace reprise::kernels::cuda
