// Batch normalisation over ranks (graph/synchronise.h): the loops of batch_norm.cc, each sum in a
// node of its own, since sums over the ranks come between them. "parts" says which rank this is and
// how many items each has; images behind the own items are padding, which counts nowhere and is
// written as zeros.

#include <algorithm>
#include <cmath>

#include "kernels/cpu/channel_strips.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace reprise::kernels::cpu {
namespace {

struct Own {
  std::int64_t rank, items;
};

class Sizes {
 public:
  Sizes(Booking& b, const ChannelView& view, std::size_t parts_input)
      : images_(view.batch),
        spatial_(view.spatial),
        numbers_(view.elements() / view.batch),
        channels_(view.channels),
        ranks_(b.input(parts_input).shape[0] - 1),
        parts_input_(parts_input),
        strips_(view) {}

  [[nodiscard]] const ChannelStrips& strips() const { return strips_; }
  [[nodiscard]] std::int64_t spatial() const { return spatial_; }
  [[nodiscard]] std::int64_t channels() const { return channels_; }
  [[nodiscard]] std::int64_t ranks() const { return ranks_; }
  [[nodiscard]] Bytes sums_bytes() const {
    return static_cast<Bytes>(sizeof(StripSums)) * strips_.strips() * strips_.parts();
  }

  [[nodiscard]] Own own(const Run& run) const {
    const auto* parts = run.input<std::int32_t>(parts_input_);
    if (parts[0] < 0 || parts[0] >= ranks_) {
      throw base::input_error("node '{}': rank {} is outside of [0, {})", run.node, parts[0],
                              ranks_);
    }
    const std::int64_t items = parts[1 + parts[0]];
    if (items < 0 || items > images_) {
      throw base::input_error("node '{}': rank {} has {} items, which is outside of [0, {})",
                              run.node, parts[0], items, images_ + 1);
    }
    return {parts[0], items};
  }
  // Values of a channel over all ranks.
  [[nodiscard]] double count(const Run& run) const {
    const auto* items = run.input<std::int32_t>(parts_input_) + 1;
    std::int64_t all = 0;
    for (std::int64_t rank = 0; rank < ranks_; ++rank) all += items[rank];
    return static_cast<double>(all * spatial_);
  }
  template <class T>
  void clear_padding(const Own& own, T* y) const {
    std::fill(y + own.items * numbers_, y + images_ * numbers_, T{});
  }

 private:
  std::int64_t images_, spatial_;
  std::int64_t numbers_;  // of an image as it lies
  std::int64_t channels_, ranks_;
  std::size_t parts_input_;
  ChannelStrips strips_;
};

double inverse_deviation(float variance, double epsilon) {
  return 1.0 / std::sqrt(static_cast<double>(variance) + epsilon);
}

// sum(strip, part, sums) for each, then finish(strip, sums per channel) one strip after the other.
template <class Sum, class Finish>
void sum_strips(const ChannelStrips& strips, StripSums* partial, Sum&& sum, Finish&& finish) {
  const std::int64_t parts = strips.parts();
  parallel_ranges(strips.strips() * parts, strips.elements(),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t task = begin; task < end; ++task) {
                      StripSums sums;
                      sum(task / parts, task % parts, sums);
                      partial[task] = sums;
                    }
                  });
  for (std::int64_t strip = 0; strip < strips.strips(); ++strip) {
    StripSums total;
    for (std::int64_t part = 0; part < parts; ++part) {
      for (std::size_t lane = 0; lane < total.first.size(); ++lane) {
        total.first[lane] += partial[strip * parts + part].first[lane];
        total.second[lane] += partial[strip * parts + part].second[lane];
      }
    }
    finish(strip, strips.folded(total));
  }
}

// map(strip, part, coefficients(strip)) for each; coefficient(lane, channel, c) fills one lane.
template <class Coefficient, class Map>
void map_strips(const ChannelStrips& strips, Coefficient&& coefficient, Map&& map) {
  const std::int64_t parts = strips.parts();
  parallel_ranges(
      strips.strips() * parts, strips.elements(), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t strip = task / parts;
          StripCoefficients c;
          for (std::int64_t lane = 0; lane < strips.real_channels(strip); ++lane)
            coefficient(static_cast<std::size_t>(lane), strips.first_channel(strip) + lane, c);
          map(strip, task % parts, strips.repeated(c));
        }
      });
}

}  // namespace

// x parts => moments[D,2,C]
std::unique_ptr<Kernel> plan_batch_norm_moments(Booking& b) {
  const Sizes sizes(b, b.require_channels(0), 1);
  b.require_plain(1);
  b.produce_plain(0);
  b.flops(4.0 * static_cast<double>(graph::element_count(b.input(0).shape)));
  const std::size_t at = b.workspace(sizes.sums_bytes());
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      const Own own = sizes.own(run);
      float* moments = run.output<float>(0);
      std::fill_n(moments, 2 * sizes.ranks() * sizes.channels(), 0.0F);
      if (own.items == 0) return;
      const ChannelStrips strips = sizes.strips().first_images(own.items);
      const double count = static_cast<double>(own.items * sizes.spatial());
      float* mean = moments + 2 * own.rank * sizes.channels();
      float* variance = mean + sizes.channels();
      sum_strips(
          strips, run.scratch<StripSums>(at),
          [&](std::int64_t strip, std::int64_t part, StripSums& sums) {
            strips.add_squares(strip, part, run.input<T>(0), sums);
          },
          [&](std::int64_t strip, const StripSums& sums) {
            const std::int64_t first = strips.first_channel(strip);
            for (std::int64_t lane = 0; lane < strips.real_channels(strip); ++lane) {
              const auto i = static_cast<std::size_t>(lane);
              const double m = sums.first[i] / count;
              mean[first + lane] = static_cast<float>(m);
              variance[first + lane] =
                  static_cast<float>(std::max(sums.second[i] / count - m * m, 0.0));
            }
          });
    });
  });
}

// moments parts => mean var sample_var
std::unique_ptr<Kernel> plan_batch_norm_combine(Booking& b) {
  for (std::size_t i = 0; i < 2; ++i) b.require_plain(i);
  for (std::size_t o = 0; o < 3; ++o) b.produce_plain(o);
  const std::int64_t ranks = b.input(0).shape[0];
  const std::int64_t channels = b.input(0).shape[2];
  const std::int64_t values = b.attributes<graph::CombineAttributes>().values;
  b.flops(10.0 * static_cast<double>(ranks * channels));
  return make_kernel([=](const Run& run) {
    const float* moments = run.input<float>(0);
    const auto* items = run.input<std::int32_t>(1) + 1;
    std::int64_t all = 0;
    for (std::int64_t r = 0; r < ranks; ++r) {
      if (items[r] < 0) {
        throw base::input_error("node '{}': rank {} has {} items", run.node, r, items[r]);
      }
      all += items[r];
    }
    const std::int64_t count = all * values;
    if (count <= 1) {
      throw base::input_error(
          "node '{}': the ranks have {} values per channel together, training needs more than "
          "one; use a larger batch or image",
          run.node, count);
    }
    const double to_sample = static_cast<double>(count) / static_cast<double>(count - 1);
    for (std::int64_t c = 0; c < channels; ++c) {
      double n = 0, mean = 0, squares = 0;  // of the ranks so far, in items
      for (std::int64_t r = 0; r < ranks; ++r) {
        if (items[r] == 0) continue;
        const double more = items[r];
        const double delta = static_cast<double>(moments[2 * r * channels + c]) - mean;
        mean += delta * more / (n + more);
        squares += more * static_cast<double>(moments[(2 * r + 1) * channels + c]) +
                   delta * delta * n * more / (n + more);
        n += more;
      }
      run.output<float>(0)[c] = static_cast<float>(mean);
      run.output<float>(1)[c] = static_cast<float>(squares / n);
      run.output<float>(2)[c] = static_cast<float>(squares / n * to_sample);
    }
  });
}

// x gamma beta mean var parts => y
std::unique_ptr<Kernel> plan_batch_norm_apply(Booking& b) {
  const Sizes sizes(b, b.require_channels(0), 5);
  for (std::size_t i = 1; i <= 5; ++i) b.require_plain(i);
  b.produce_like(0, 0);
  b.flops(4.0 * static_cast<double>(graph::element_count(b.input(0).shape)));
  const double epsilon = b.attributes<graph::NormAttributes>().epsilon;
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      const Own own = sizes.own(run);
      const ChannelStrips strips = sizes.strips().first_images(own.items);
      T* y = run.output<T>(0);
      map_strips(
          strips,
          [&](std::size_t lane, std::int64_t channel, StripCoefficients& c) {
            c.mean[lane] = run.input<float>(3)[channel];
            c.scale[lane] =
                static_cast<float>(run.input<float>(1)[channel] *
                                   inverse_deviation(run.input<float>(4)[channel], epsilon));
            c.shift[lane] = run.input<float>(2)[channel];
          },
          [&](std::int64_t strip, std::int64_t part, const StripCoefficients& c) {
            strips.normalize(strip, part, run.input<T>(0), c, y);
          });
      sizes.clear_padding(own, y);
    });
  });
}

// x dy mean var parts => sums[2,C]: of dy, and of dy xhat
std::unique_ptr<Kernel> plan_batch_norm_grad_sums(Booking& b) {
  const Sizes sizes(b, b.require_channels(0), 4);
  b.require_like(1, 0);
  for (std::size_t i = 2; i <= 4; ++i) b.require_plain(i);
  b.produce_plain(0);
  b.flops(5.0 * static_cast<double>(graph::element_count(b.input(0).shape)));
  const double epsilon = b.attributes<graph::NormAttributes>().epsilon;
  const std::size_t at = b.workspace(sizes.sums_bytes());
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      const ChannelStrips strips = sizes.strips().first_images(sizes.own(run).items);
      const float* mean = run.input<float>(2);
      float* of_dy = run.output<float>(0);
      float* of_product = of_dy + sizes.channels();
      sum_strips(
          strips, run.scratch<StripSums>(at),
          [&](std::int64_t strip, std::int64_t part, StripSums& sums) {
            StripCoefficients c;
            std::copy_n(mean + strips.first_channel(strip), strips.real_channels(strip),
                        c.mean.begin());
            strips.add_products(strip, part, run.input<T>(0), run.input<T>(1), strips.repeated(c),
                                sums);
          },
          [&](std::int64_t strip, const StripSums& sums) {
            const std::int64_t first = strips.first_channel(strip);
            for (std::int64_t lane = 0; lane < strips.real_channels(strip); ++lane) {
              const auto i = static_cast<std::size_t>(lane);
              of_dy[first + lane] = static_cast<float>(sums.first[i]);
              of_product[first + lane] = static_cast<float>(
                  sums.second[i] * inverse_deviation(run.input<float>(3)[first + lane], epsilon));
            }
          });
    });
  });
}

// x dy mean var gamma sums parts => dx dgamma dbeta. With n values of a channel over all ranks:
//   dx = gamma / deviation (dy - sum(dy) / n - xhat sum(dy xhat) / n)
std::unique_ptr<Kernel> plan_batch_norm_grad_input(Booking& b) {
  const Sizes sizes(b, b.require_channels(0), 6);
  b.require_like(1, 0);
  for (std::size_t i = 2; i <= 6; ++i) b.require_plain(i);
  b.produce_like(0, 0);
  b.produce_plain(1);
  b.produce_plain(2);
  b.flops(7.0 * static_cast<double>(graph::element_count(b.input(0).shape)));
  const double epsilon = b.attributes<graph::NormAttributes>().epsilon;
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      const Own own = sizes.own(run);
      const ChannelStrips strips = sizes.strips().first_images(own.items);
      const double count = sizes.count(run);
      const float* of_dy = run.input<float>(5);
      const float* of_product = of_dy + sizes.channels();
      T* dx = run.output<T>(0);
      map_strips(
          strips,
          [&](std::size_t lane, std::int64_t channel, StripCoefficients& c) {
            const double inverse = inverse_deviation(run.input<float>(3)[channel], epsilon);
            c.mean[lane] = run.input<float>(2)[channel];
            c.shift[lane] = static_cast<float>(of_dy[channel] / count);
            c.slope[lane] = static_cast<float>(of_product[channel] * inverse / count);
            c.scale[lane] = static_cast<float>(run.input<float>(4)[channel] * inverse);
          },
          [&](std::int64_t strip, std::int64_t part, const StripCoefficients& c) {
            strips.normalize_grad(strip, part, run.input<T>(0), run.input<T>(1), c, dx);
          });
      sizes.clear_padding(own, dx);
      std::copy_n(of_product, sizes.channels(), run.output<float>(1));
      std::copy_n(of_dy, sizes.channels(), run.output<float>(2));
    });
  });
}

}  // namespace reprise::kernels::cpu
