// A row belongs to a warp, or to a block where it is long. dgamma and dbeta are sums over rows: a
// kernel of their own makes them, before dx may overwrite dy.

#include <algorithm>
#include <cmath>

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/layer_norm.h"
#include "kernels/cuda/reduction.cuh"
#include "platform/launch.h"

namespace reprise::kernels::cuda {
namespace {

constexpr std::int64_t kLongRow = 1024;
constexpr int kTileRows = 8;

template <int kLanes>
__device__ inline std::int64_t row_of_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * (kGroupBlock / kLanes) + threadIdx.x / kLanes;
}

__device__ inline double inverse_deviation(float variance, double epsilon) {
  return 1.0 / sqrt(static_cast<double>(variance) + epsilon);
}

template <int kLanes, class T>
__global__ void layer_norm_kernel(LayerNormSizes s, const T* x, const float* gamma,
                                  const float* beta, T* y, float* mean, float* var) {
  const std::int64_t row = row_of_thread<kLanes>();
  if (row >= s.rows) return;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  const T* from = x + row * s.columns;
  double sum = 0.0;
  double squares = 0.0;
  for (std::int64_t i = lane; i < s.columns; i += kLanes) {
    const auto value = static_cast<double>(number(from[i]));
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(s.columns);
  const double m = group_sum<kLanes>(sum) / count;
  const double v = group_sum<kLanes>(squares) / count - m * m;
  const auto center = static_cast<float>(m);
  const auto variance = static_cast<float>(v < 0.0 ? 0.0 : v);
  const auto scale = static_cast<float>(inverse_deviation(variance, s.epsilon));
  if (lane == 0) {
    mean[row] = center;
    var[row] = variance;
  }
  T* to = y + row * s.columns;
  for (std::int64_t i = lane; i < s.columns; i += kLanes) {
    to[i] = stored<T>((number(from[i]) - center) * scale * gamma[i] + beta[i]);
  }
}

template <int kLanes, class T>
__global__ void layer_norm_grad_kernel(LayerNormSizes s, const T* x, const T* dy, const float* mean,
                                       const float* var, const float* gamma, T* dx) {
  const std::int64_t row = row_of_thread<kLanes>();
  if (row >= s.rows) return;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  const T* of_x = x + row * s.columns;
  const T* of_dy = dy + row * s.columns;
  const float center = mean[row];
  const double inverse = inverse_deviation(var[row], s.epsilon);
  double sum = 0.0;
  double product = 0.0;
  for (std::int64_t i = lane; i < s.columns; i += kLanes) {
    const auto g = static_cast<double>(number(of_dy[i])) * static_cast<double>(gamma[i]);
    sum += g;
    product += g * static_cast<double>(number(of_x[i]) - center);
  }
  const auto count = static_cast<double>(s.columns);
  const auto shift = static_cast<float>(group_sum<kLanes>(sum) / count);
  const auto slope = static_cast<float>(group_sum<kLanes>(product) * inverse * inverse / count);
  const auto scale = static_cast<float>(inverse);
  T* to = dx + row * s.columns;
  for (std::int64_t i = lane; i < s.columns; i += kLanes) {
    const float gradient = number(of_dy[i]) * gamma[i];
    to[i] = stored<T>(scale * (gradient - shift - (number(of_x[i]) - center) * slope));
  }
}

// Blocks of 32 x kTileRows threads: 32 neighbouring columns, the rows of part blockIdx.y. Writes
// partial[0: dgamma, 1: dbeta][part][column].
template <class T>
__global__ void layer_norm_column_sums_kernel(LayerNormSizes s, const T* x, const T* dy,
                                              const float* mean, const float* var,
                                              double* partial) {
  __shared__ double of_row[kTileRows][2][32];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * 32 + threadIdx.x;
  const std::int64_t length = (s.rows + s.parts - 1) / s.parts;
  const std::int64_t begin = blockIdx.y * length;
  const std::int64_t end = begin + length < s.rows ? begin + length : s.rows;
  double sums[2] = {};
  if (column < s.columns) {
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kTileRows) {
      const std::int64_t at = row * s.columns + column;
      const auto g = static_cast<double>(number(dy[at]));
      const auto epsilon = static_cast<float>(s.epsilon);
      const float normalised = (number(x[at]) - mean[row]) / sqrtf(var[row] + epsilon);
      sums[0] += g * static_cast<double>(normalised);
      sums[1] += g;
    }
  }
  for (int v = 0; v < 2; ++v) of_row[threadIdx.y][v][threadIdx.x] = sums[v];
  __syncthreads();
  if (threadIdx.y >= 2 || column >= s.columns) return;
  double total = 0.0;
  for (int row = 0; row < kTileRows; ++row) total += of_row[row][threadIdx.y][threadIdx.x];
  partial[(threadIdx.y * s.parts + blockIdx.y) * s.columns + column] = total;
}

__global__ void finish_column_sums_kernel(LayerNormSizes s, const double* partial, float* dgamma,
                                          float* dbeta) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= s.columns) return;
  double sums[2] = {};
  for (std::int64_t part = 0; part < s.parts; ++part) {
    sums[0] += partial[part * s.columns + column];
    sums[1] += partial[(s.parts + part) * s.columns + column];
  }
  dgamma[column] = static_cast<float>(sums[0]);
  dbeta[column] = static_cast<float>(sums[1]);
}

template <int kLanes>
dim3 row_grid(const LayerNormSizes& s) {
  constexpr std::int64_t kRows = kGroupBlock / kLanes;
  return dim3(static_cast<unsigned>((s.rows + kRows - 1) / kRows));
}

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

}  // namespace

LayerNormSizes::LayerNormSizes(std::int64_t rows_of_x, std::int64_t columns_of_x, double added)
    : rows(rows_of_x), columns(columns_of_x), epsilon(added) {
  const std::int64_t blocks = std::max<std::int64_t>((columns + 31) / 32, 1);
  parts = std::clamp<std::int64_t>(std::min(rows / 256, 1024 / blocks), 1, 128);
}

template <class T>
void launch_layer_norm(const LayerNormSizes& s, const T* x, const float* gamma, const float* beta,
                       T* y, float* mean, float* var, cudaStream_t stream) {
  const bool wide = s.columns > kLongRow;
  const std::size_t count = size(s.rows * s.columns);
  launch("layer_norm", wide ? layer_norm_kernel<256, T> : layer_norm_kernel<32, T>,
         wide ? row_grid<256>(s) : row_grid<32>(s), dim3(kGroupBlock), stream,
         {reads(x, count), reads(gamma, size(s.columns)), reads(beta, size(s.columns)),
          writes(y, count), writes(mean, size(s.rows)), writes(var, size(s.rows))},
         s, x, gamma, beta, y, mean, var);
}

template <class T>
void launch_layer_norm_grad(const LayerNormSizes& s, const T* x, const T* dy, const float* mean,
                            const float* var, const float* gamma, T* dx, float* dgamma,
                            float* dbeta, double* partial, cudaStream_t stream) {
  const std::size_t count = size(s.rows * s.columns);
  const std::size_t sums = size(2 * s.parts * s.columns);
  const Touched statistics[2] = {reads(mean, size(s.rows)), reads(var, size(s.rows))};
  launch("layer_norm_column_sums", layer_norm_column_sums_kernel<T>,
         dim3(static_cast<unsigned>((s.columns + 31) / 32), static_cast<unsigned>(s.parts)),
         dim3(32, kTileRows), stream,
         {reads(x, count), reads(dy, count), statistics[0], statistics[1], writes(partial, sums)},
         s, x, dy, mean, var, partial);
  launch("layer_norm_parameters", finish_column_sums_kernel,
         dim3(static_cast<unsigned>((s.columns + kBlock - 1) / kBlock)), dim3(kBlock), stream,
         {reads(partial, sums), writes(dgamma, size(s.columns)), writes(dbeta, size(s.columns))}, s,
         partial, dgamma, dbeta);
  const bool wide = s.columns > kLongRow;
  launch("layer_norm_grad", wide ? layer_norm_grad_kernel<256, T> : layer_norm_grad_kernel<32, T>,
         wide ? row_grid<256>(s) : row_grid<32>(s), dim3(kGroupBlock), stream,
         {reads(x, count), reads(dy, count), statistics[0], statistics[1],
          reads(gamma, size(s.columns)), writes(dx, count)},
         s, x, dy, mean, var, gamma, dx);
}

template void launch_layer_norm(const LayerNormSizes&, const float*, const float*, const float*,
                                float*, float*, float*, cudaStream_t);
template void launch_layer_norm_grad(const LayerNormSizes&, const float*, const float*,
                                     const float*, const float*, const float*, float*, float*,
                                     float*, double*, cudaStream_t);
template void launch_layer_norm(const LayerNormSizes&, const BFloat16*, const float*, const float*,
                                BFloat16*, float*, float*, cudaStream_t);
template void launch_layer_norm_grad(const LayerNormSizes&, const BFloat16*, const BFloat16*,
                                     const float*, const float*, const float*, BFloat16*, float*,
                                     float*, double*, cudaStream_t);

}  // namespace reprise::kernels::cuda
