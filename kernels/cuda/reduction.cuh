#pragma once

// Sums over the threads of a warp or block, always in the same order.

#include "platform/launch.h"

namespace reprise::kernels::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffU;

// In every lane.
template <class T>
__device__ inline T warp_sum(T value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

__device__ inline float warp_max(float value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

// In every thread of a block of kThreads along x.
template <int kThreads, class T>
__device__ inline T block_sum(T value) {
  __shared__ T of_warp[kThreads / 32];
  value = warp_sum(value);
  __syncthreads();  // the last call's readers are done
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  T sum = of_warp[0];
  for (int warp = 1; warp < kThreads / 32; ++warp) sum += of_warp[warp];
  return sum;
}

template <int kThreads>
__device__ inline float block_max(float value) {
  __shared__ float of_warp[kThreads / 32];
  value = warp_max(value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float largest = of_warp[0];
  for (int warp = 1; warp < kThreads / 32; ++warp) largest = fmaxf(largest, of_warp[warp]);
  return largest;
}

// Of blocks of 256 threads along x, kLanes (32 or 256) neighbours together.
inline constexpr int kGroupBlock = 256;
template <int kLanes, class T>
__device__ inline T group_sum(T value) {
  if constexpr (kLanes == 32) {
    return warp_sum(value);
  } else {
    return block_sum<kGroupBlock>(value);
  }
}
template <int kLanes>
__device__ inline float group_max(float value) {
  if constexpr (kLanes == 32) {
    return warp_max(value);
  } else {
    return block_max<kGroupBlock>(value);
  }
}

}  // namespace reprise::kernels::cuda
