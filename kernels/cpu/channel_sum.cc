#include "kernels/cpu/channel_sum.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/parallel.h"

namespace reprise::kernels::cpu {
namespace {

// Channels summed side by side: a cache line or more of each row, and registers for the sums.
constexpr std::int64_t kWide = 64;

// Sums of `width` neighbouring lanes over `rows` rows that lie `stride` apart.
template <class T>
[[gnu::always_inline]] inline void add_rows_of(const T* x, std::int64_t rows, std::int64_t stride,
                                               std::int64_t width, double* sums) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t lane = 0; lane < width; ++lane) sums[lane] += load(x[row * stride + lane]);
  }
}
REPRISE_VECTOR void add_rows(const float* x, std::int64_t rows, std::int64_t stride,
                             std::int64_t width, double* sums) {
  add_rows_of(x, rows, stride, width, sums);
}
REPRISE_VECTOR void add_rows(const Bf16* x, std::int64_t rows, std::int64_t stride,
                             std::int64_t width, double* sums) {
  add_rows_of(x, rows, stride, width, sums);
}

// Sum of neighbours, in eight interleaved parts.
template <class T>
[[gnu::always_inline]] inline double sum_of(const T* x, std::int64_t count) {
  std::array<double, 8> parts{};
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (std::int64_t lane = 0; lane < 8; ++lane)
      parts[static_cast<std::size_t>(lane)] += load(x[i + lane]);
  }
  double sum = 0;
  for (; i < count; ++i) sum += load(x[i]);
  for (const double part : parts) sum += part;
  return sum;
}
REPRISE_VECTOR double sum_run(const float* x, std::int64_t count) {
  return sum_of(x, count);
}
REPRISE_VECTOR double sum_run(const Bf16* x, std::int64_t count) {
  return sum_of(x, count);
}

void store(const double* sums, std::int64_t first, std::int64_t count, const float* initial,
           float* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double start = initial == nullptr ? 0.0 : static_cast<double>(initial[first + i]);
    out[first + i] = static_cast<float>(start + sums[i]);
  }
}

}  // namespace

template <class T>
void channel_sums(const ChannelView& view, const T* x, const float* initial, float* sum) {
  if (view.lanes == 1) {
    parallel_ranges(view.channels, view.elements(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c) {
        double total = 0;
        for (std::int64_t n = 0; n < view.batch; ++n) {
          total += sum_run(x + (n * view.blocks + c) * view.spatial, view.spatial);
        }
        store(&total, c, 1, initial, sum);
      }
    });
    return;
  }
  const std::int64_t pieces = (view.lanes + kWide - 1) / kWide;
  parallel_ranges(view.blocks * pieces, view.elements(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t block = item / pieces;
      const std::int64_t lane = item % pieces * kWide;
      const std::int64_t width =
          std::min({kWide, view.lanes - lane, view.channels - block * view.lanes - lane});
      std::array<double, kWide> sums{};
      for (std::int64_t n = 0; n < view.batch; ++n) {
        add_rows(x + (n * view.blocks + block) * view.spatial * view.lanes + lane, view.spatial,
                 view.lanes, width, sums.data());
      }
      store(sums.data(), block * view.lanes + lane, width, initial, sum);
    }
  });
}

template void channel_sums(const ChannelView&, const float*, const float*, float*);
template void channel_sums(const ChannelView&, const Bf16*, const float*, float*);

template <class T>
void image_sums(const ChannelView& view, const T* x, double factor, T* sum) {
  const std::int64_t pieces = (view.lanes + kWide - 1) / kWide;
  const std::int64_t items = view.batch * view.blocks * pieces;
  parallel_ranges(items, view.elements(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t row = item / pieces;  // of batch and blocks
      const std::int64_t first = row % view.blocks * view.lanes + item % pieces * kWide;
      const std::int64_t width =
          std::min({kWide, view.lanes - item % pieces * kWide, view.channels - first});
      const T* from = x + row * view.spatial * view.lanes + item % pieces * kWide;
      std::array<double, kWide> sums{};
      if (view.lanes == 1) {
        sums[0] = sum_run(from, view.spatial);
      } else {
        add_rows(from, view.spatial, view.lanes, width, sums.data());
      }
      T* to = sum + row / view.blocks * view.channels + first;
      for (std::int64_t i = 0; i < width; ++i) {
        to[i] = stored<T>(static_cast<float>(factor * sums[static_cast<std::size_t>(i)]));
      }
    }
  });
}

template void image_sums(const ChannelView&, const float*, double, float*);
template void image_sums(const ChannelView&, const Bf16*, double, Bf16*);

}  // namespace reprise::kernels::cpu
