#include "kernels/cpu/channel_strips.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/parallel.h"

namespace reprise::kernels::cpu {
namespace {

// Vectors of the compiler: lane by lane the same operations on every instruction set.
constexpr std::int64_t kHalf = kStripLanes / 2;
using Lanes = float __attribute__((vector_size(4 * kStripLanes)));
using HalfLanes = float __attribute__((vector_size(4 * kHalf)));
using Doubles = double __attribute__((vector_size(8 * kHalf)));
using Words = std::uint32_t __attribute__((vector_size(4 * kStripLanes)));
using HalfWords = std::uint16_t __attribute__((vector_size(2 * kStripLanes)));
using WordsOfHalf = std::uint32_t __attribute__((vector_size(4 * kHalf)));
using HalfWordsOfHalf = std::uint16_t __attribute__((vector_size(2 * kHalf)));

template <class Vector, class T>
[[gnu::always_inline]] inline void load(const T* from, Vector& to) {
  std::memcpy(&to, from, sizeof to);
}
[[gnu::always_inline]] inline void load(const Bf16* from, Lanes& to) {
  HalfWords bits;
  std::memcpy(&bits, from, sizeof bits);
  const Words wide = __builtin_convertvector(bits, Words) << 16;
  std::memcpy(&to, &wide, sizeof to);
}
[[gnu::always_inline]] inline void load(const Bf16* from, HalfLanes& to) {
  HalfWordsOfHalf bits;
  std::memcpy(&bits, from, sizeof bits);
  const WordsOfHalf wide = __builtin_convertvector(bits, WordsOfHalf) << 16;
  std::memcpy(&to, &wide, sizeof to);
}
template <class Vector, class T>
[[gnu::always_inline]] inline void store(const Vector& from, T* to) {
  std::memcpy(to, &from, sizeof from);
}
// As stored<Bf16>(), lane by lane.
[[gnu::always_inline]] inline void store(const Lanes& from, Bf16* to) {
  Words bits;
  std::memcpy(&bits, &from, sizeof bits);
  const Words rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const Words nan = (bits >> 16) | 0x40u;
  const Words chosen = (bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded;
  const HalfWords narrow = __builtin_convertvector(chosen, HalfWords);
  std::memcpy(to, &narrow, sizeof narrow);
}

// Squares are summed in f64 all the way: the variance is what is left of two large sums.
template <class T>
[[gnu::always_inline]] inline void squares_of(const T* x, std::int64_t rows, std::int64_t stride,
                                              StripSums& sums) {
  Doubles first[2], second[2];
  for (std::int64_t half = 0; half < 2; ++half) {
    load(sums.first.data() + half * kHalf, first[half]);
    load(sums.second.data() + half * kHalf, second[half]);
  }
  for (std::int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 2
    for (std::int64_t half = 0; half < 2; ++half) {
      HalfLanes value;
      load(x + row * stride + half * kHalf, value);
      const Doubles wide = __builtin_convertvector(value, Doubles);
      first[half] += wide;
      second[half] += wide * wide;
    }
  }
  for (std::int64_t half = 0; half < 2; ++half) {
    store(first[half], sums.first.data() + half * kHalf);
    store(second[half], sums.second.data() + half * kHalf);
  }
}
REPRISE_VECTOR void squares(const float* x, std::int64_t rows, std::int64_t stride,
                            StripSums& sums) {
  squares_of(x, rows, stride, sums);
}
REPRISE_VECTOR void squares(const Bf16* x, std::int64_t rows, std::int64_t stride,
                            StripSums& sums) {
  squares_of(x, rows, stride, sums);
}

// Rows summed in f32 before they are added to the f64 sums: their error is below 16 roundings.
constexpr std::int64_t kRowsInF32 = 16;

template <class T>
[[gnu::always_inline]] inline void products_of(const T* x, const T* dy, std::int64_t rows,
                                               std::int64_t stride, const StripCoefficients& c,
                                               StripSums& sums) {
  Lanes center;
  load(c.mean.data(), center);
  for (std::int64_t begin = 0; begin < rows; begin += kRowsInF32) {
    const std::int64_t end = std::min(begin + kRowsInF32, rows);
    Lanes first{}, second{};
    for (std::int64_t row = begin; row < end; ++row) {
      Lanes value, gradient;
      load(x + row * stride, value);
      load(dy + row * stride, gradient);
      first += gradient;
      second += gradient * (value - center);
    }
    for (std::size_t lane = 0; lane < kStripLanes; ++lane) {
      sums.first[lane] += first[lane];
      sums.second[lane] += second[lane];
    }
  }
}
REPRISE_VECTOR void products(const float* x, const float* dy, std::int64_t rows,
                             std::int64_t stride, const StripCoefficients& c, StripSums& sums) {
  products_of(x, dy, rows, stride, c, sums);
}
REPRISE_VECTOR void products(const Bf16* x, const Bf16* dy, std::int64_t rows, std::int64_t stride,
                             const StripCoefficients& c, StripSums& sums) {
  products_of(x, dy, rows, stride, c, sums);
}

template <class T>
[[gnu::always_inline]] inline void map_rows_of(const T* x, std::int64_t rows, std::int64_t stride,
                                               const StripCoefficients& c, T* y) {
  Lanes mean, scale, shift;
  load(c.mean.data(), mean);
  load(c.scale.data(), scale);
  load(c.shift.data(), shift);
  for (std::int64_t row = 0; row < rows; ++row) {
    Lanes value;
    load(x + row * stride, value);
    store((value - mean) * scale + shift, y + row * stride);
  }
}
REPRISE_VECTOR void map_rows(const float* x, std::int64_t rows, std::int64_t stride,
                             const StripCoefficients& c, float* y) {
  map_rows_of(x, rows, stride, c, y);
}
REPRISE_VECTOR void map_rows(const Bf16* x, std::int64_t rows, std::int64_t stride,
                             const StripCoefficients& c, Bf16* y) {
  map_rows_of(x, rows, stride, c, y);
}

template <class T>
[[gnu::always_inline]] inline void map_grad_rows_of(const T* x, const T* dy, std::int64_t rows,
                                                    std::int64_t stride, const StripCoefficients& c,
                                                    T* dx) {
  Lanes mean, scale, shift, slope;
  load(c.mean.data(), mean);
  load(c.scale.data(), scale);
  load(c.shift.data(), shift);
  load(c.slope.data(), slope);
  for (std::int64_t row = 0; row < rows; ++row) {
    Lanes value, gradient;
    load(x + row * stride, value);
    load(dy + row * stride, gradient);
    store((gradient - shift - (value - mean) * slope) * scale, dx + row * stride);
  }
}
REPRISE_VECTOR void map_grad_rows(const float* x, const float* dy, std::int64_t rows,
                                  std::int64_t stride, const StripCoefficients& c, float* dx) {
  map_grad_rows_of(x, dy, rows, stride, c, dx);
}
REPRISE_VECTOR void map_grad_rows(const Bf16* x, const Bf16* dy, std::int64_t rows,
                                  std::int64_t stride, const StripCoefficients& c, Bf16* dx) {
  map_grad_rows_of(x, dy, rows, stride, c, dx);
}

// The rest of a stretch, fewer lanes than a vector: zeros stand behind them.
template <class T>
class Padded {
 public:
  Padded(const T* from, std::int64_t width) { std::copy_n(from, width, lanes_.begin()); }
  [[nodiscard]] T* data() { return lanes_.data(); }
  void copy_to(T* to, std::int64_t width) const { std::copy_n(lanes_.begin(), width, to); }

 private:
  std::array<T, kStripLanes> lanes_{};
};

// Cutting further has no use: fewer rows than this are done before another core has woken up.
constexpr std::int64_t kFewestRows = 64;
constexpr std::int64_t kWantedTasks = 32;
// Of one tensor: about what a core's second level holds, and what the cores share.
constexpr std::int64_t kSmallStripBytes = std::int64_t{1} << 20;
constexpr std::int64_t kRoundBytes = std::int64_t{4} << 20;

}  // namespace

ChannelStrips::ChannelStrips(const ChannelView& view)
    : view_(view),
      contiguous_(kStripLanes % view.lanes == 0),
      pieces_((view.lanes + kStripLanes - 1) / kStripLanes) {
  const std::int64_t rows = view_.batch * view_.spatial;
  const std::int64_t strip_bytes = rows * width(0) * std::int64_t{sizeof(float)};
  round_ = std::clamp(kRoundBytes / strip_bytes, std::int64_t{1}, strips());
  if (strips() >= kWantedTasks / 2 && strip_bytes <= kSmallStripBytes) return;
  parts_ = std::clamp(rows / kFewestRows, std::int64_t{1}, (kWantedTasks - 1) / round_ + 1);
}

ChannelStrips ChannelStrips::first_images(std::int64_t count) const {
  ChannelStrips fewer = *this;
  fewer.view_.batch = count;
  return fewer;
}

std::int64_t ChannelStrips::first_channel(std::int64_t strip) const {
  return strip / pieces_ * view_.lanes + strip % pieces_ * kStripLanes;
}

std::int64_t ChannelStrips::real_channels(std::int64_t strip) const {
  return std::min(width(strip), view_.channels - first_channel(strip));
}

std::int64_t ChannelStrips::width(std::int64_t strip) const {
  return std::min(kStripLanes, view_.lanes - strip % pieces_ * kStripLanes);
}

template <class F>
void ChannelStrips::for_stretches(std::int64_t strip, std::int64_t part, F&& f) const {
  const std::int64_t all = view_.batch * view_.spatial;
  const std::int64_t end = all * (part + 1) / parts_;
  const std::int64_t block = strip / pieces_;
  for (std::int64_t row = all * part / parts_; row < end;) {
    const std::int64_t image = row / view_.spatial;
    const std::int64_t s = row % view_.spatial;
    const std::int64_t rows = std::min(view_.spatial - s, end - row);
    const std::int64_t offset = ((image * view_.blocks + block) * view_.spatial + s) * view_.lanes +
                                strip % pieces_ * kStripLanes;
    row += rows;
    if (!contiguous_) {
      f(offset, rows, view_.lanes, width(strip));
      continue;
    }
    const std::int64_t floats = rows * view_.lanes;
    f(offset, floats / kStripLanes, kStripLanes, kStripLanes);
    const std::int64_t rest = floats % kStripLanes;
    if (rest != 0) f(offset + floats - rest, std::int64_t{1}, kStripLanes, rest);
  }
}

template <class T>
void ChannelStrips::add_squares(std::int64_t strip, std::int64_t part, const T* x,
                                StripSums& sums) const {
  for_stretches(
      strip, part,
      [&](std::int64_t offset, std::int64_t rows, std::int64_t stride, std::int64_t lanes) {
        if (lanes == kStripLanes) return squares(x + offset, rows, stride, sums);
        for (std::int64_t row = 0; row < rows; ++row) {
          squares(Padded(x + offset + row * stride, lanes).data(), 1, 0, sums);
        }
      });
}

template <class T>
void ChannelStrips::add_products(std::int64_t strip, std::int64_t part, const T* x, const T* dy,
                                 const StripCoefficients& c, StripSums& sums) const {
  for_stretches(
      strip, part,
      [&](std::int64_t offset, std::int64_t rows, std::int64_t stride, std::int64_t lanes) {
        if (lanes == kStripLanes) return products(x + offset, dy + offset, rows, stride, c, sums);
        for (std::int64_t at = offset; rows > 0; --rows, at += stride) {
          products(Padded(x + at, lanes).data(), Padded(dy + at, lanes).data(), 1, 0, c, sums);
        }
      });
}

template <class T>
void ChannelStrips::normalize(std::int64_t strip, std::int64_t part, const T* x,
                              const StripCoefficients& c, T* y) const {
  for_stretches(
      strip, part,
      [&](std::int64_t offset, std::int64_t rows, std::int64_t stride, std::int64_t lanes) {
        if (lanes == kStripLanes) return map_rows(x + offset, rows, stride, c, y + offset);
        for (std::int64_t at = offset; rows > 0; --rows, at += stride) {
          Padded values(x + at, lanes);
          map_rows(values.data(), 1, 0, c, values.data());
          values.copy_to(y + at, lanes);
        }
      });
}

template <class T>
void ChannelStrips::normalize_grad(std::int64_t strip, std::int64_t part, const T* x, const T* dy,
                                   const StripCoefficients& c, T* dx) const {
  for_stretches(
      strip, part,
      [&](std::int64_t offset, std::int64_t rows, std::int64_t stride, std::int64_t lanes) {
        if (lanes == kStripLanes) {
          return map_grad_rows(x + offset, dy + offset, rows, stride, c, dx + offset);
        }
        for (std::int64_t at = offset; rows > 0; --rows, at += stride) {
          Padded values(dy + at, lanes);
          map_grad_rows(Padded(x + at, lanes).data(), values.data(), 1, 0, c, values.data());
          values.copy_to(dx + at, lanes);
        }
      });
}

StripSums ChannelStrips::folded(const StripSums& sums) const {
  if (!contiguous_) return sums;
  StripSums total;
  for (std::int64_t lane = 0; lane < kStripLanes; ++lane) {
    const auto to = static_cast<std::size_t>(lane % view_.lanes);
    total.first[to] += sums.first[static_cast<std::size_t>(lane)];
    total.second[to] += sums.second[static_cast<std::size_t>(lane)];
  }
  return total;
}

StripCoefficients ChannelStrips::repeated(StripCoefficients c) const {
  if (!contiguous_) return c;
  for (auto lane = static_cast<std::size_t>(view_.lanes); lane < c.mean.size(); ++lane) {
    const std::size_t from = lane - static_cast<std::size_t>(view_.lanes);
    c.mean[lane] = c.mean[from];
    c.scale[lane] = c.scale[from];
    c.shift[lane] = c.shift[from];
    c.slope[lane] = c.slope[from];
  }
  return c;
}

// T is a type: parentheses around it would be a cast. NOLINTBEGIN(bugprone-macro-parentheses)
#define REPRISE_STRIPS_OF(T)                                                                  \
  template void ChannelStrips::add_squares(std::int64_t, std::int64_t, const T*, StripSums&)  \
      const;                                                                                  \
  template void ChannelStrips::add_products(std::int64_t, std::int64_t, const T*, const T*,   \
                                            const StripCoefficients&, StripSums&) const;      \
  template void ChannelStrips::normalize(std::int64_t, std::int64_t, const T*,                \
                                         const StripCoefficients&, T*) const;                 \
  template void ChannelStrips::normalize_grad(std::int64_t, std::int64_t, const T*, const T*, \
                                              const StripCoefficients&, T*) const;
REPRISE_STRIPS_OF(float)
REPRISE_STRIPS_OF(Bf16)
#undef REPRISE_STRIPS_OF
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace reprise::kernels::cpu
