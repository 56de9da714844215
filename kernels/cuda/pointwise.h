#pragma once

// Ops that work element by element, on the device. All arrays have `count` elements; an output may
// lie where an input does.

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

namespace reprise::kernels::cuda {

enum class Map { kRelu, kSigmoid, kTanh, kGelu };
void launch_map(Map map, const float* x, float* y, std::int64_t count, cudaStream_t stream);
void launch_scale(float factor, const float* x, float* y, std::int64_t count, cudaStream_t stream);
void launch_positive(const float* x, std::int32_t* y, std::int64_t count, cudaStream_t stream);

// Gradients read y (gelu's x) and dy.
enum class Map2 { kReluGrad, kSigmoidGrad, kTanhGrad, kGeluGrad, kAdd, kMul };
void launch_map2(Map2 map, const float* a, const float* b, float* y, std::int64_t count,
                 cudaStream_t stream);
void launch_add(const std::int32_t* a, const std::int32_t* b, std::int32_t* y, std::int64_t count,
                cudaStream_t stream);

}  // namespace reprise::kernels::cuda
