// 16 bytes of the smallest element a thread and turn, then the rest of the array. No __restrict__:
// an output may be an input.

#include <cmath>

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/pointwise.h"
#include "platform/launch.h"

namespace reprise::kernels::cuda {
namespace {

constexpr float kRootHalf = 0.70710678118654752F;
constexpr float kRootTwoPi = 2.50662827463100050F;

__device__ inline float normal_cdf(float x) {
  return 0.5F * erfcf(-x * kRootHalf);
}
__device__ inline float normal_pdf(float x) {
  return expf(-0.5F * x * x) / kRootTwoPi;
}

struct Relu {
  __device__ float operator()(float x) const { return x > 0.0F ? x : 0.0F; }
};
struct Sigmoid {
  __device__ float operator()(float x) const { return 1.0F / (1.0F + expf(-x)); }
};
struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};
struct Gelu {
  __device__ float operator()(float x) const { return x * normal_cdf(x); }
};
struct Scale {
  float factor;
  __device__ float operator()(float x) const { return factor * x; }
};
struct Same {
  __device__ float operator()(float x) const { return x; }
};
struct Positive {
  __device__ std::int32_t operator()(float x) const { return x > 0.0F ? 1 : 0; }
};
struct ReluGrad {
  __device__ float operator()(float y, float dy) const { return y > 0.0F ? dy : 0.0F; }
};
struct SigmoidGrad {
  __device__ float operator()(float y, float dy) const { return dy * y * (1.0F - y); }
};
struct TanhGrad {
  __device__ float operator()(float y, float dy) const { return dy * (1.0F - y * y); }
};
struct GeluGrad {
  __device__ float operator()(float x, float dy) const {
    return dy * (normal_cdf(x) + x * normal_pdf(x));
  }
};
struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Mul {
  __device__ float operator()(float a, float b) const { return a * b; }
};

template <class T>
inline constexpr int kAtOnce = 16 / static_cast<int>(sizeof(T));

template <int kWidth, class F, class In, class Out>
__global__ void map_kernel(F f, const In* x, Out* y, std::int64_t count) {
  const std::int64_t pieces = count / kWidth;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t i = first; i < pieces; i += threads) {
    const auto from = reinterpret_cast<const Piece<In, kWidth>*>(x)[i];
    Piece<Out, kWidth> to;
    for (int k = 0; k < kWidth; ++k) to.v[k] = stored<Out>(f(number(from.v[k])));
    reinterpret_cast<Piece<Out, kWidth>*>(y)[i] = to;
  }
  const std::int64_t last = kWidth * pieces + first;
  if (last < count) y[last] = stored<Out>(f(number(x[last])));
}

template <class F, class T>
__global__ void map2_kernel(F f, const T* a, const T* b, T* y, std::int64_t count) {
  constexpr int kWidth = kAtOnce<T>;
  const std::int64_t pieces = count / kWidth;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t i = first; i < pieces; i += threads) {
    const auto left = reinterpret_cast<const Piece<T, kWidth>*>(a)[i];
    const auto right = reinterpret_cast<const Piece<T, kWidth>*>(b)[i];
    Piece<T, kWidth> to;
    for (int k = 0; k < kWidth; ++k) {
      to.v[k] = stored<T>(f(number(left.v[k]), number(right.v[k])));
    }
    reinterpret_cast<Piece<T, kWidth>*>(y)[i] = to;
  }
  const std::int64_t last = kWidth * pieces + first;
  if (last < count) y[last] = stored<T>(f(number(a[last]), number(b[last])));
}

template <class F, class In, class Out>
void map(const char* name, F f, const In* x, Out* y, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  const auto n = static_cast<std::size_t>(count);
  constexpr int kWidth = std::max(kAtOnce<In>, kAtOnce<Out>);
  launch(name, map_kernel<kWidth, F, In, Out>, grid_for((count + kWidth - 1) / kWidth),
         dim3(kBlock), stream, {reads(x, n), writes(y, n)}, f, x, y, count);
}

template <class F, class T>
void map2(const char* name, F f, const T* a, const T* b, T* y, std::int64_t count,
          cudaStream_t stream) {
  if (count == 0) return;
  const auto n = static_cast<std::size_t>(count);
  launch(name, map2_kernel<F, T>, grid_for((count + kAtOnce<T> - 1) / kAtOnce<T>), dim3(kBlock),
         stream, {reads(a, n), reads(b, n), writes(y, n)}, f, a, b, y, count);
}

}  // namespace

template <class T>
void launch_map(Map which, const T* x, T* y, std::int64_t count, cudaStream_t stream) {
  switch (which) {
    case Map::kRelu:
      return map("relu", Relu{}, x, y, count, stream);
    case Map::kSigmoid:
      return map("sigmoid", Sigmoid{}, x, y, count, stream);
    case Map::kTanh:
      return map("tanh", Tanh{}, x, y, count, stream);
    case Map::kGelu:
      return map("gelu", Gelu{}, x, y, count, stream);
  }
}

template <class T>
void launch_scale(float factor, const T* x, T* y, std::int64_t count, cudaStream_t stream) {
  map("scale", Scale{factor}, x, y, count, stream);
}

template <class T>
void launch_positive(const T* x, std::int32_t* y, std::int64_t count, cudaStream_t stream) {
  map("positive", Positive{}, x, y, count, stream);
}

template <class In, class Out>
void launch_cast(const In* x, Out* y, std::int64_t count, cudaStream_t stream) {
  map("cast", Same{}, x, y, count, stream);
}

template <class T>
void launch_map2(Map2 which, const T* a, const T* b, T* y, std::int64_t count,
                 cudaStream_t stream) {
  switch (which) {
    case Map2::kReluGrad:
      return map2("relu_grad", ReluGrad{}, a, b, y, count, stream);
    case Map2::kSigmoidGrad:
      return map2("sigmoid_grad", SigmoidGrad{}, a, b, y, count, stream);
    case Map2::kTanhGrad:
      return map2("tanh_grad", TanhGrad{}, a, b, y, count, stream);
    case Map2::kGeluGrad:
      return map2("gelu_grad", GeluGrad{}, a, b, y, count, stream);
    case Map2::kAdd:
      return map2("add", Add{}, a, b, y, count, stream);
    case Map2::kMul:
      return map2("mul", Mul{}, a, b, y, count, stream);
  }
}

void launch_add(const std::int32_t* a, const std::int32_t* b, std::int32_t* y, std::int64_t count,
                cudaStream_t stream) {
  map2("add", Add{}, a, b, y, count, stream);
}

template void launch_map(Map, const float*, float*, std::int64_t, cudaStream_t);
template void launch_map(Map, const BFloat16*, BFloat16*, std::int64_t, cudaStream_t);
template void launch_scale(float, const float*, float*, std::int64_t, cudaStream_t);
template void launch_scale(float, const BFloat16*, BFloat16*, std::int64_t, cudaStream_t);
template void launch_positive(const float*, std::int32_t*, std::int64_t, cudaStream_t);
template void launch_positive(const BFloat16*, std::int32_t*, std::int64_t, cudaStream_t);
template void launch_cast(const float*, BFloat16*, std::int64_t, cudaStream_t);
template void launch_cast(const BFloat16*, float*, std::int64_t, cudaStream_t);
template void launch_map2(Map2, const float*, const float*, float*, std::int64_t, cudaStream_t);
template void launch_map2(Map2, const BFloat16*, const BFloat16*, BFloat16*, std::int64_t,
                          cudaStream_t);

}  // namespace reprise::kernels::cuda
