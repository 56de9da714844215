#pragma once

// What device code may use beside C++ (kernels/cuda/platform/launch.h lists it), on the host.
// cuda_runtime.h itself defines __global__ and __device__ as nothing for a host compiler.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <cuda_runtime.h>
#include <math.h>
#include <type_traits>

#include "host/grid.h"

#undef __shared__
#define __shared__ static thread_local

namespace reprise::test::cuda {

template <class T>
[[nodiscard]] inline std::uint64_t packed(T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// `source` as the lane of a group of `width` lanes; a lane outside of the group becomes its own.
template <class T>
[[nodiscard]] inline T shuffle(const char* function, unsigned mask, T value, long source, int width,
                               Site site) {
  const long lane = running_lane();
  const long begin = lane - lane % width;
  if (source < begin || source >= begin + width) source = lane;
  const std::uint64_t bits =
      warp_exchange({function, mask, site, packed(value), static_cast<unsigned>(source)}).value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

[[nodiscard]] inline unsigned vote(const char* function, unsigned mask, bool value, Site site) {
  return warp_exchange({function, mask, site, std::uint64_t{value}, running_lane()}).nonzero;
}

}  // namespace reprise::test::cuda

// The last two arguments are never given: they say where the call stands.
#define REPRISE_TEST_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(REPRISE_TEST_SITE) {
  reprise::test::cuda::block_barrier({file, line});
}
inline void __syncwarp(unsigned mask = 0xffffffffU, REPRISE_TEST_SITE) {
  (void)reprise::test::cuda::vote("__syncwarp", mask, false, {file, line});
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, REPRISE_TEST_SITE) {
  const long lane = reprise::test::cuda::running_lane();
  // Lanes of a group count from its begin, modulo its width.
  const long from = lane - lane % width + (source & (width - 1));
  return reprise::test::cuda::shuffle("__shfl_sync", mask, value, from, width, {file, line});
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, REPRISE_TEST_SITE) {
  const long from = reprise::test::cuda::running_lane() + static_cast<long>(delta);
  return reprise::test::cuda::shuffle("__shfl_down_sync", mask, value, from, width, {file, line});
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, REPRISE_TEST_SITE) {
  const long from = reprise::test::cuda::running_lane() - static_cast<long>(delta);
  return reprise::test::cuda::shuffle("__shfl_up_sync", mask, value, from, width, {file, line});
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, REPRISE_TEST_SITE) {
  const long from = reprise::test::cuda::running_lane() ^ static_cast<unsigned>(lane_mask);
  return reprise::test::cuda::shuffle("__shfl_xor_sync", mask, value, from, width, {file, line});
}
inline unsigned __ballot_sync(unsigned mask, int value, REPRISE_TEST_SITE) {
  return reprise::test::cuda::vote("__ballot_sync", mask, value != 0, {file, line});
}
inline int __any_sync(unsigned mask, int value, REPRISE_TEST_SITE) {
  return reprise::test::cuda::vote("__any_sync", mask, value != 0, {file, line}) != 0;
}
inline int __all_sync(unsigned mask, int value, REPRISE_TEST_SITE) {
  return reprise::test::cuda::vote("__all_sync", mask, value != 0, {file, line}) == mask;
}
#undef REPRISE_TEST_SITE

// Threads of a block take turns only at barriers and warp functions.
template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = old + value;
  return old;
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = std::max(old, value);
  return old;
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = std::min(old, value);
  return old;
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = old | value;
  return old;
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = value;
  return old;
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  const T old = *address;
  if (old == expected) *address = value;
  return old;
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
T __ldg(const T* address) {
  return *address;
}

using std::max;
using std::min;

inline float rsqrtf(float x) {
  return 1.0F / std::sqrt(x);
}
inline double rsqrt(double x) {
  return 1.0 / std::sqrt(x);
}
inline float __expf(float x) {
  return std::exp(x);
}
inline float __logf(float x) {
  return std::log(x);
}
inline float __fdividef(float a, float b) {
  return a / b;
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fsub_rn(float a, float b) {
  return a - b;
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fdiv_rn(float a, float b) {
  return a / b;
}
inline float __frcp_rn(float a) {
  return 1.0F / a;
}
inline float __fsqrt_rn(float a) {
  return std::sqrt(a);
}
inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline float __saturatef(float x) {
  return std::fmin(std::fmax(x, 0.0F), 1.0F);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((std::uint64_t{a} * b) >> 32);
}
inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __ffs(int x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1;
}
inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
