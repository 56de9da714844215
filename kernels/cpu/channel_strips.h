#pragma once

// The loops of batch normalisation: sums per channel over a tensor of any channel layout, and maps
// with coefficients per channel. Own loops rather than oneDNN's primitive, whose threads spin at
// barriers inside one call: on a machine shared with others each such wait can take a time slice.
//
// A strip is up to 16 neighbouring channels of a block (one channel where the layout has one lane);
// the rows of a strip, batch x spatial of them, are cut into parts. Strips and parts are a matter
// of the shape alone, and partial sums are added in their order: bits do not depend on the threads.

#include <array>
#include <cstdint>

#include "kernels/cpu/layout.h"
#include "kernels/cpu/storage.h"

namespace reprise::kernels::cpu {

inline constexpr std::int64_t kStripLanes = 16;

// Two sums per channel of a strip. f64: sums of f32 squares stay exact enough to subtract.
struct StripSums {
  std::array<double, kStripLanes> first{};
  std::array<double, kStripLanes> second{};
};

// Coefficients per channel; what they are is up to the loop. Zeros give zeros in padded channels.
struct StripCoefficients {
  std::array<float, kStripLanes> mean{};
  std::array<float, kStripLanes> scale{};
  std::array<float, kStripLanes> shift{};
  std::array<float, kStripLanes> slope{};
};

class ChannelStrips {
 public:
  explicit ChannelStrips(const ChannelView& view);
  // The same strips over the first `count` images alone; sums over none of them are zeros.
  [[nodiscard]] ChannelStrips first_images(std::int64_t count) const;

  [[nodiscard]] std::int64_t strips() const { return view_.blocks * pieces_; }
  // 1 where the strips alone keep the cores busy and are small: then sums and map of a strip follow
  // each other while it is in a core's cache. Otherwise as many strips are summed and then mapped
  // in one round as the shared cache may hold.
  [[nodiscard]] std::int64_t parts() const { return parts_; }
  [[nodiscard]] std::int64_t round() const { return round_; }
  [[nodiscard]] std::int64_t elements() const { return view_.elements(); }

  // Channels [first, first + real) are those of the strip; the lanes behind them are padding.
  [[nodiscard]] std::int64_t first_channel(std::int64_t strip) const;
  [[nodiscard]] std::int64_t real_channels(std::int64_t strip) const;

  // Lanes are summed side by side, also where several of them are one channel: the sums per
  // channel, and coefficients per channel repeated for all lanes.
  [[nodiscard]] StripSums folded(const StripSums& sums) const;
  [[nodiscard]] StripCoefficients repeated(StripCoefficients c) const;

  // T: float or Bf16. Over one part of one strip: first += x, second += x * x.
  template <class T>
  void add_squares(std::int64_t strip, std::int64_t part, const T* x, StripSums& sums) const;
  // first += dy, second += dy * (x - mean).
  template <class T>
  void add_products(std::int64_t strip, std::int64_t part, const T* x, const T* dy,
                    const StripCoefficients& c, StripSums& sums) const;
  // y = (x - mean) * scale + shift; y may be x.
  template <class T>
  void normalize(std::int64_t strip, std::int64_t part, const T* x, const StripCoefficients& c,
                 T* y) const;
  // dx = (dy - shift - (x - mean) * slope) * scale; dx may be dy or x.
  template <class T>
  void normalize_grad(std::int64_t strip, std::int64_t part, const T* x, const T* dy,
                      const StripCoefficients& c, T* dx) const;

 private:
  // Calls f(offset, rows, stride, lanes) for each stretch of the part that lies within an image.
  template <class F>
  void for_stretches(std::int64_t strip, std::int64_t part, F&& f) const;
  [[nodiscard]] std::int64_t width(std::int64_t strip) const;

  ChannelView view_;
  bool contiguous_ = true;  // the rows of a strip lie side by side, a whole number of them a vector
  std::int64_t pieces_ = 1;  // strips of a block
  std::int64_t parts_ = 1;
  std::int64_t round_ = 1;
};

}  // namespace reprise::kernels::cpu
