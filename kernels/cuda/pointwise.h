#pragma once

// Ops that work element by element, on the device. All arrays have `count` elements; an output may
// lie where an input does. T, In and Out are the types of element.h; a cast is between its two.

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

#include "kernels/cuda/element.h"

namespace reprise::kernels::cuda {

enum class Map { kRelu, kSigmoid, kTanh, kGelu };
template <class T>
void launch_map(Map map, const T* x, T* y, std::int64_t count, cudaStream_t stream);
template <class T>
void launch_scale(float factor, const T* x, T* y, std::int64_t count, cudaStream_t stream);
template <class T>
void launch_positive(const T* x, std::int32_t* y, std::int64_t count, cudaStream_t stream);
template <class In, class Out>
void launch_cast(const In* x, Out* y, std::int64_t count, cudaStream_t stream);

// Gradients read y (gelu's x) and dy.
enum class Map2 { kReluGrad, kSigmoidGrad, kTanhGrad, kGeluGrad, kAdd, kMul };
template <class T>
void launch_map2(Map2 map, const T* a, const T* b, T* y, std::int64_t count, cudaStream_t stream);
void launch_add(const std::int32_t* a, const std::int32_t* b, std::int32_t* y, std::int64_t count,
                cudaStream_t stream);

}  // namespace reprise::kernels::cuda
