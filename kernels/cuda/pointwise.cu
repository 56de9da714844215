// Four elements a thread and turn, then the last one to three of the array. No __restrict__: an
// output may be an input.

#include <cmath>

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

template <class F, class In, class Out>
__global__ void map_kernel(F f, const In* x, Out* y, std::int64_t count) {
  const std::int64_t quads = count / 4;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t i = first; i < quads; i += threads) {
    const Quad<In> from = reinterpret_cast<const Quad<In>*>(x)[i];
    Quad<Out> to;
    for (int k = 0; k < 4; ++k) to.v[k] = f(from.v[k]);
    reinterpret_cast<Quad<Out>*>(y)[i] = to;
  }
  if (first < count % 4) y[4 * quads + first] = f(x[4 * quads + first]);
}

template <class F, class T>
__global__ void map2_kernel(F f, const T* a, const T* b, T* y, std::int64_t count) {
  const std::int64_t quads = count / 4;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t i = first; i < quads; i += threads) {
    const Quad<T> left = reinterpret_cast<const Quad<T>*>(a)[i];
    const Quad<T> right = reinterpret_cast<const Quad<T>*>(b)[i];
    Quad<T> to;
    for (int k = 0; k < 4; ++k) to.v[k] = f(left.v[k], right.v[k]);
    reinterpret_cast<Quad<T>*>(y)[i] = to;
  }
  if (first < count % 4) {
    y[4 * quads + first] = f(a[4 * quads + first], b[4 * quads + first]);
  }
}

template <class F, class In, class Out>
void map(const char* name, F f, const In* x, Out* y, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  const auto n = static_cast<std::size_t>(count);
  launch(name, map_kernel<F, In, Out>, grid_for((count + 3) / 4), dim3(kBlock), stream,
         {reads(x, n), writes(y, n)}, f, x, y, count);
}

template <class F, class T>
void map2(const char* name, F f, const T* a, const T* b, T* y, std::int64_t count,
          cudaStream_t stream) {
  if (count == 0) return;
  const auto n = static_cast<std::size_t>(count);
  launch(name, map2_kernel<F, T>, grid_for((count + 3) / 4), dim3(kBlock), stream,
         {reads(a, n), reads(b, n), writes(y, n)}, f, a, b, y, count);
}

}  // namespace

void launch_map(Map which, const float* x, float* y, std::int64_t count, cudaStream_t stream) {
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

void launch_scale(float factor, const float* x, float* y, std::int64_t count, cudaStream_t stream) {
  map("scale", Scale{factor}, x, y, count, stream);
}

void launch_positive(const float* x, std::int32_t* y, std::int64_t count, cudaStream_t stream) {
  map("positive", Positive{}, x, y, count, stream);
}

void launch_map2(Map2 which, const float* a, const float* b, float* y, std::int64_t count,
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

}  // namespace reprise::kernels::cuda
