#pragma once

// Numbers as they lie in memory, f32 or bf16. Kernels compute in f32 and round once, when they
// store; a loop over both is written once, over what load() gives and store() takes.

#include <bit>
#include <cstdint>

#include "graph/bf16.h"
#include "graph/types.h"

namespace reprise::kernels::cpu {

struct Bf16 {
  std::uint16_t bits;
};

[[gnu::always_inline]] inline float load(float number) {
  return number;
}
[[gnu::always_inline]] inline float load(Bf16 number) {
  return graph::from_bf16(number.bits);
}

template <class T>
[[gnu::always_inline]] inline T stored(float number) {
  return number;
}
// As graph::to_bf16(), without branches.
template <>
[[gnu::always_inline]] inline Bf16 stored<Bf16>(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40u;
  return {static_cast<std::uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded)};
}

// f(float{}) or f(Bf16{}), by the dtype of a float.
template <class F>
auto with_storage(graph::DType dtype, F&& f) {
  return dtype == graph::DType::kBF16 ? f(Bf16{}) : f(float{});
}

}  // namespace reprise::kernels::cpu
