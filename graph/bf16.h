#pragma once

// Numbers of 16 bits: the upper half of an f32, so sign, 8 bits of exponent and 7 of the
// significand. Rounding is to the nearest, ties to the even one; what lies beyond the largest
// finite number becomes infinite, a NaN stays one.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace reprise::graph {

[[nodiscard]] constexpr float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

[[nodiscard]] constexpr std::uint16_t to_bf16(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  // The rounding below would carry some NaNs into infinity.
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// The bf16 number nearest to a double, in one rounding.
[[nodiscard]] inline double nearest_bf16(double number) {
  if (number == 0 || !std::isfinite(number)) return number;
  int exponent = 0;  // |number| lies in [2^(exponent-1), 2^exponent)
  (void)std::frexp(number, &exponent);
  constexpr int kPrecision = 8, kSmallest = -133;  // 2^-133 is the smallest subnormal
  const int unit = exponent - kPrecision > kSmallest ? exponent - kPrecision : kSmallest;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(number, -unit)), unit);
  if (std::abs(rounded) < 0x1p128) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), number);
}

}  // namespace reprise::graph
