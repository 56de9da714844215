#pragma once

// Functions of f32 that compilers vectorise: no calls, no branches.

#include <bit>
#include <cstdint>

namespace reprise::kernels::cpu {

// e^x within two units in the last place for x in [-87, 88]; 0 below, e^88 above; NaN stays.
//
// With n = round(x / ln 2) and r = x - n ln 2, |r| <= ln 2 / 2: e^x = 2^n e^r, and the Taylor
// polynomial of degree 7 is within 0.3466^8 / 8! = 5e-9 of e^r.
[[gnu::always_inline]] inline float exp_f32(float x) {
  constexpr float kLowest = -87.0f;
  constexpr float kHighest = 88.0f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  const float clamped = x < kLowest ? kLowest : (x > kHighest ? kHighest : x);
  const float shifted = clamped * 1.44269504f + kRound;
  const float n = shifted - kRound;
  // ln 2 in two parts; the first has 9 bits, so that n times it is exact.
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // The low bits of `shifted` hold n; moved to the exponent they make 2^n.
  const auto exponent = static_cast<std::uint32_t>(std::bit_cast<std::uint32_t>(shifted) << 23);
  const float scaled = p * std::bit_cast<float>(exponent + 0x3F800000u);
  return x < kLowest ? 0.0f : scaled;
}

[[gnu::always_inline]] inline float sigmoid_f32(float x) {
  return 1.0f / (1.0f + exp_f32(-x));
}

// Absolute error below 1e-7.
[[gnu::always_inline]] inline float tanh_f32(float x) {
  return 1.0f - 2.0f / (1.0f + exp_f32(2.0f * x));
}

}  // namespace reprise::kernels::cpu
