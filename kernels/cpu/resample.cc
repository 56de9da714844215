// Global average pooling and nearest upsampling, on any channel layout. Padded channels hold zeros
// and give zeros.

#include <algorithm>
#include <array>

#include "kernels/cpu/channel_sum.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace reprise::kernels::cpu {

// x[N,C,H,W] => y[N,C]
std::unique_ptr<Kernel> plan_global_avg_pool(Booking& b) {
  const ChannelView view = b.require_channels(0);
  b.produce_plain(0);
  b.flops(static_cast<double>(view.elements()));
  const double factor = 1.0 / static_cast<double>(view.spatial);
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel(
        [=](const Run& run) { image_sums(view, run.input<T>(0), factor, run.output<T>(0)); });
  });
}

// dy[N,C] => dx[N,C,H,W]: blocked by 16 where there are that many channels, as convolutions like it
std::unique_ptr<Kernel> plan_global_avg_pool_grad(Booking& b) {
  const graph::Shape& dx = b.output(0).shape;
  b.require_plain(0);
  const std::int64_t lanes = dx[1] >= 16 ? 16 : 1;
  b.produce(0, channel_desc(dx, lanes, b.output(0).dtype));
  const std::int64_t channels = dx[1];
  const std::int64_t spatial = dx[2] * dx[3];
  const std::int64_t blocks = (channels + lanes - 1) / lanes;
  const std::int64_t count = dx[0] * blocks;
  const float factor = static_cast<float>(1.0 / static_cast<double>(spatial));
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      const T* dy = run.input<T>(0);
      T* out = run.output<T>(0);
      parallel_ranges(count, count * spatial * lanes, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t first = i % blocks * lanes;  // channel
          const std::int64_t real = std::min(lanes, channels - first);
          std::array<T, 16> values{};  // zeros in the padding
          for (std::int64_t lane = 0; lane < real; ++lane) {
            values[static_cast<std::size_t>(lane)] =
                stored<T>(factor * load(dy[i / blocks * channels + first + lane]));
          }
          T* to = out + i * spatial * lanes;
          if (lanes == 1) {
            std::fill_n(to, spatial, values[0]);
          } else {
            for (std::int64_t s = 0; s < spatial; ++s) {
              std::copy_n(values.data(), 16, to + s * 16);
            }
          }
        }
      });
    });
  });
}

namespace {

struct Upsampling {
  std::int64_t planes;  // batch * blocks
  std::int64_t height, width, lanes, factor;

  [[nodiscard]] std::int64_t fine_elements() const {
    return planes * height * width * lanes * factor * factor;
  }
};

Upsampling upsampling(const ChannelView& view, const graph::Shape& coarse, std::int64_t factor) {
  return {view.batch * view.blocks, coarse[2], coarse[3], view.lanes, factor};
}

// Each element of the coarse row `from` is written factor x factor times.
template <class T>
void spread_row(const Upsampling& u, const T* from, T* to) {
  const std::int64_t fine_row = u.width * u.factor * u.lanes;
  for (std::int64_t x = 0; x < u.width; ++x) {
    for (std::int64_t i = 0; i < u.factor; ++i) {
      std::copy_n(from + x * u.lanes, u.lanes, to + (x * u.factor + i) * u.lanes);
    }
  }
  for (std::int64_t i = 1; i < u.factor; ++i) std::copy_n(to, fine_row, to + i * fine_row);
}

// Each element of the coarse row `to` is the sum of factor x factor fine ones, kWide lanes at a
// time.
template <class T>
void gather_row(const Upsampling& u, const T* from, T* to) {
  constexpr std::int64_t kWide = 16;
  const std::int64_t fine_row = u.width * u.factor * u.lanes;
  for (std::int64_t x = 0; x < u.width; ++x) {
    for (std::int64_t first = 0; first < u.lanes; first += kWide) {
      const std::int64_t wide = std::min(kWide, u.lanes - first);
      std::array<float, kWide> sums{};
      for (std::int64_t i = 0; i < u.factor * u.factor; ++i) {
        const std::int64_t fine = x * u.factor + i % u.factor;
        const T* source = from + i / u.factor * fine_row + fine * u.lanes + first;
        for (std::int64_t lane = 0; lane < wide; ++lane)
          sums[static_cast<std::size_t>(lane)] += load(source[lane]);
      }
      for (std::int64_t lane = 0; lane < wide; ++lane)
        to[x * u.lanes + first + lane] = stored<T>(sums[static_cast<std::size_t>(lane)]);
    }
  }
}

}  // namespace

// x[N,C,H,W] => y[N,C,fH,fW]
std::unique_ptr<Kernel> plan_upsample(Booking& b) {
  const ChannelView view = b.require_channels(0);
  const std::int64_t factor = b.attributes<graph::UpsampleAttributes>().factor;
  b.produce(0, channel_desc(b.output(0).shape, view.lanes, b.output(0).dtype));
  const Upsampling u = upsampling(view, b.input(0).shape, factor);
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      const T* x = run.input<T>(0);
      T* y = run.output<T>(0);
      const std::int64_t row = u.width * u.lanes;
      parallel_ranges(u.planes * u.height, u.fine_elements(),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t i = begin; i < end; ++i) {
                          spread_row(u, x + i * row, y + i * row * u.factor * u.factor);
                        }
                      });
    });
  });
}

// dy[N,C,fH,fW] => dx[N,C,H,W]
std::unique_ptr<Kernel> plan_upsample_grad(Booking& b) {
  const ChannelView view = b.require_channels(0);
  const std::int64_t factor = b.attributes<graph::UpsampleAttributes>().factor;
  b.produce(0, channel_desc(b.output(0).shape, view.lanes, b.output(0).dtype));
  const Upsampling u = upsampling(view, b.output(0).shape, factor);
  b.flops(static_cast<double>(u.fine_elements()));
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      const T* dy = run.input<T>(0);
      T* dx = run.output<T>(0);
      const std::int64_t row = u.width * u.lanes;
      parallel_ranges(u.planes * u.height, u.fine_elements(),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t i = begin; i < end; ++i) {
                          gather_row(u, dy + i * row * u.factor * u.factor, dx + i * row);
                        }
                      });
    });
  });
}

}  // namespace reprise::kernels::cpu
