#pragma once

// Between what a value stores (element.h, or counts) and the numbers that kernels calculate with.

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <type_traits>

#include "kernels/cuda/element.h"

namespace reprise::kernels::cuda {

__device__ inline float number(float x) {
  return x;
}
__device__ inline float number(BFloat16 x) {
  return __bfloat162float(__ushort_as_bfloat16(x.bits));
}
__device__ inline std::int32_t number(std::int32_t x) {
  return x;
}

// stored<T>(x): x as a T, rounded to nearest even; infinite beyond the largest, NaN stays NaN.
template <class T, class Number>
__device__ inline T stored(Number x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return BFloat16{__bfloat16_as_ushort(__float2bfloat16_rn(x))};
  } else {
    static_assert(std::is_same_v<T, Number>);
    return x;
  }
}

// Neighbours that are read or written at once. Arrays start at multiples of 64 bytes.
template <class T, int kWidth>
struct alignas(kWidth * sizeof(T)) Piece {
  T v[kWidth];
};

}  // namespace reprise::kernels::cuda
