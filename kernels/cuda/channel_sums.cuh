#pragma once

// The first kernel of channel_sums.h, for any terms of type T: F says what each element adds.
//
//   struct F {
//     static constexpr int kValues;   // sums made side by side
//     static constexpr bool kSecond;  // whether y is read
//     __device__ void operator()(float x, float y, float centre, double* sums) const;
//   };
//
// `centre` is centres[channel], 0 where `centres` is null.

#include "kernels/cuda/channel_sums.h"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/reduction.cuh"
#include "platform/launch.h"

namespace reprise::kernels::cuda {

// partial[value][part][sum]
struct PartialSums {
  std::int64_t parts, sums;
  __device__ double total(const double* partial, int value, std::int64_t sum) const {
    double result = 0.0;
    for (std::int64_t part = 0; part < parts; ++part) {
      result += partial[(value * parts + part) * sums + sum];
    }
    return result;
  }
};

// Adds the terms first, first + step, ... below `end` of one sum, counted in pieces of kWidth terms
// that lie side by side.
template <int kWidth, class F, class T>
__device__ inline void add_terms(const F& f, const SumSizes& s, const T* x, const T* y,
                                 const float* centres, std::int64_t sum, std::int64_t first,
                                 std::int64_t step, std::int64_t end, double* sums) {
  if (first >= end) return;
  const std::int64_t channel = sum % s.channels;
  const std::int64_t row = s.channels * s.inner;
  const std::int64_t base = sum / s.channels * s.outer * row + channel * s.inner;
  const std::int64_t inner = s.inner / kWidth;
  const float centre = centres == nullptr ? 0.0F : centres[channel];
  const std::int64_t outer_step = step / inner;
  const std::int64_t inner_step = step % inner;
  std::int64_t o = first / inner;
  std::int64_t i = first % inner;
  for (std::int64_t piece = first; piece < end; piece += step) {
    const std::int64_t at = base + o * row + i * kWidth;
    const auto of_x = *reinterpret_cast<const Piece<T, kWidth>*>(x + at);
    Piece<T, kWidth> of_y{};
    if constexpr (F::kSecond) of_y = *reinterpret_cast<const Piece<T, kWidth>*>(y + at);
    for (int k = 0; k < kWidth; ++k) f(number(of_x.v[k]), number(of_y.v[k]), centre, sums);
    o += outer_step;
    i += inner_step;
    if (i >= inner) {
      i -= inner;
      ++o;
    }
  }
}

// Terms that count: all, or those of the items of this rank ("parts" of batch norm over ranks).
__device__ inline std::int64_t counted_terms(const SumSizes& s, const std::int32_t* ranks,
                                             int rank_count) {
  if (ranks == nullptr) return s.terms();
  if (ranks[0] < 0 || ranks[0] >= rank_count) return 0;
  const std::int64_t items = ranks[1 + ranks[0]];
  return (items < s.outer ? items : s.outer) * s.inner;
}

inline constexpr int kColumnRows = 8;

// Blocks of 32 x kColumnRows threads: neighbouring sums beside each other, eight threads a sum.
template <class F, class T>
__global__ void column_sums_kernel(F f, SumSizes s, std::int64_t part_terms, const T* x, const T* y,
                                   const float* centres, const std::int32_t* ranks, int rank_count,
                                   double* partial) {
  __shared__ double of_row[kColumnRows][F::kValues][32];
  const std::int64_t sum = static_cast<std::int64_t>(blockIdx.x) * 32 + threadIdx.x;
  const std::int64_t begin = blockIdx.y * part_terms;
  const std::int64_t counted = counted_terms(s, ranks, rank_count);
  const std::int64_t end = begin + part_terms < counted ? begin + part_terms : counted;
  double sums[F::kValues] = {};
  if (sum < s.sums()) {
    add_terms<1>(f, s, x, y, centres, sum, begin + threadIdx.y, kColumnRows, end, sums);
  }
  for (int v = 0; v < F::kValues; ++v) of_row[threadIdx.y][v][threadIdx.x] = sums[v];
  __syncthreads();
  if (threadIdx.y != 0 || sum >= s.sums()) return;
  for (int v = 0; v < F::kValues; ++v) {
    double total = 0.0;
    for (int row = 0; row < kColumnRows; ++row) total += of_row[row][v][threadIdx.x];
    partial[(static_cast<std::int64_t>(v) * gridDim.y + blockIdx.y) * s.sums() + sum] = total;
  }
}

// Blocks of 256 threads, kLanes (32 or 256) a sum. With kWidth = 4, inner and part_terms are
// multiples of four.
template <int kLanes, int kWidth, class F, class T>
__global__ void row_sums_kernel(F f, SumSizes s, std::int64_t part_terms, const T* x, const T* y,
                                const float* centres, const std::int32_t* ranks, int rank_count,
                                double* partial) {
  const std::int64_t sum =
      static_cast<std::int64_t>(blockIdx.x) * (kGroupBlock / kLanes) + threadIdx.x / kLanes;
  const std::int64_t begin = blockIdx.y * part_terms;
  const std::int64_t counted = counted_terms(s, ranks, rank_count);
  const std::int64_t end = begin + part_terms < counted ? begin + part_terms : counted;
  double sums[F::kValues] = {};
  if (sum < s.sums()) {
    add_terms<kWidth>(f, s, x, y, centres, sum, begin / kWidth + threadIdx.x % kLanes, kLanes,
                      end / kWidth, sums);
  }
  for (int v = 0; v < F::kValues; ++v) {
    const double total = group_sum<kLanes>(sums[v]);
    if (threadIdx.x % kLanes == 0 && sum < s.sums()) {
      partial[(static_cast<std::int64_t>(v) * gridDim.y + blockIdx.y) * s.sums() + sum] = total;
    }
  }
}

// Queues the first kernel; `partial` holds plan.scratch_bytes(F::kValues).
template <class F, class T>
void launch_partial_sums(const char* name, const F& f, const SumPlan& plan, const T* x,
                         const std::type_identity_t<T>* y, const float* centres,
                         const std::int32_t* ranks, int rank_count, double* partial,
                         cudaStream_t stream) {
  const SumSizes& s = plan.sizes;
  if (s.sums() == 0) return;
  const auto count = static_cast<std::size_t>(s.sums() * s.terms());
  const auto sums = static_cast<std::size_t>(s.sums());
  const std::initializer_list<Touched> touched{
      reads(x, count), reads(y, F::kSecond ? count : 0),
      reads(centres, centres == nullptr ? 0 : static_cast<std::size_t>(s.channels)),
      reads(ranks, ranks == nullptr ? 0 : static_cast<std::size_t>(rank_count) + 1),
      writes(partial, F::kValues * static_cast<std::size_t>(plan.parts) * sums)};
  const auto start = [&](auto kernel, std::int64_t sums_of_block, dim3 block) {
    const std::int64_t blocks = (s.sums() + sums_of_block - 1) / sums_of_block;
    launch(name, kernel, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(plan.parts)),
           block, stream, touched, f, s, plan.part_terms, x, y, centres, ranks, rank_count,
           partial);
  };
  const bool quads = s.inner % 4 == 0;
  switch (plan.group) {
    case SumPlan::Group::kColumn:
      return start(column_sums_kernel<F, T>, 32, dim3(32, kColumnRows));
    case SumPlan::Group::kWarp:
      return start(quads ? row_sums_kernel<32, 4, F, T> : row_sums_kernel<32, 1, F, T>,
                   kGroupBlock / 32, dim3(kGroupBlock));
    case SumPlan::Group::kBlock:
      return start(
          quads ? row_sums_kernel<kGroupBlock, 4, F, T> : row_sums_kernel<kGroupBlock, 1, F, T>, 1,
          dim3(kGroupBlock));
  }
}

}  // namespace reprise::kernels::cuda
