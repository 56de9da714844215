#pragma once

// Maps over x[N,C,...] in which each element knows its channel.

#include <limits>

#include "kernels/cuda/channel_sums.cuh"
#include "kernels/cuda/grid.h"

namespace reprise::kernels::cuda {

// Calls f(at, channel, counts) for each `width` elements from `at`, all of one channel. Index: 32
// bits where they are enough, since the division is what costs. `counted`: elements of the items.
template <class Index, class F>
__device__ inline void for_each_in_channels(const SumSizes& s, int width, std::int64_t counted,
                                            const F& f) {
  const auto pieces = static_cast<Index>(s.sums() * s.terms() / width);
  const auto inner = static_cast<Index>(s.inner / width);
  const auto channels = static_cast<Index>(s.channels);
  const auto threads = static_cast<Index>(static_cast<Index>(gridDim.x) * blockDim.x);
  for (auto i = static_cast<Index>(static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x);
       i < pieces; i += threads) {
    const std::int64_t at = static_cast<std::int64_t>(i) * width;
    f(at, static_cast<std::int64_t>(i / inner % channels), at < counted);
  }
}

// Elements of the items that count, of all channels.
__device__ inline std::int64_t counted_elements(const SumSizes& s, const std::int32_t* ranks,
                                                int rank_count) {
  return counted_terms(s, ranks, rank_count) * s.channels;
}

// Whether 32 bits hold every index, those beyond the end that the last turn tries included.
[[nodiscard]] inline bool fits_32_bits(const SumSizes& s) {
  return s.sums() * s.terms() < std::numeric_limits<std::int32_t>::max();
}
[[nodiscard]] inline bool fits_quads(const SumSizes& s) {
  return s.inner % 4 == 0;
}

}  // namespace reprise::kernels::cuda
