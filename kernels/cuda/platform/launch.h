#pragma once

// How the CUDA backend starts its kernels. This form is for nvcc; the tests bring another header of
// the same name, found through the include path, that runs the same kernels on the host.
//
// What a kernel source may use: __global__, __device__, __shared__ arrays of fixed size (no dynamic
// shared memory), threadIdx, blockIdx, blockDim, gridDim (one-, two- or three-dimensional),
// __syncthreads, __syncwarp, __shfl_sync and its kind (up, down, xor) with full masks,
// atomicAdd on int, float4 and its kind, fminf, expf and other functions of <cmath>, conversions to
// and from bf16 (element.cuh). No cooperative groups, no inline PTX, no textures, no CUB. Pointers
// are arguments of their own, never members of a struct that is one: the tests translate them. Many
// arrays of one allocation go as one pointer and their distances from it.

#ifndef __CUDACC__
// A quoted include looks beside the kernel source first and so comes here; this one goes by the
// include path alone.
#include <platform/launch.h>
#else

#include <cstddef>
#include <cuda_runtime.h>
#include <initializer_list>
#include <span>

#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {

// Bytes that a kernel reads or writes. Nothing is done with them on a GPU; the tests check by them
// that no two operations that touch the same bytes are unordered.
struct Touched {
  const void* begin = nullptr;
  std::size_t bytes = 0;
  bool written = false;
};
template <class T>
[[nodiscard]] inline Touched reads(const T* data, std::size_t count) {
  return {data, count * sizeof(T), false};
}
template <class T>
[[nodiscard]] inline Touched writes(T* data, std::size_t count) {
  return {data, count * sizeof(T), true};
}

// Queues kernel(arguments...) on `stream`. `name` is for error messages and traces. A grid without
// blocks is no error: nothing is started.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            cudaStream_t stream, std::span<const Touched> /*touched*/, Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  // clang-format off
  kernel<<<grid, block, 0, stream>>>(static_cast<Parameters>(arguments)...);
  // clang-format on
  check(cudaGetLastError(), name);
}
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            cudaStream_t stream, std::initializer_list<Touched> touched, Arguments... arguments) {
  launch(name, kernel, grid, block, stream, std::span(touched.begin(), touched.size()),
         arguments...);
}

}  // namespace reprise::kernels::cuda

#endif
