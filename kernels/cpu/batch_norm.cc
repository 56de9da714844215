// Batch normalisation. N x H x W values per channel, C channels; the variance is the population
// one; the running statistics are updated by a node of their own.

#include <algorithm>
#include <cmath>

#include "kernels/cpu/channel_strips.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace reprise::kernels::cpu {
namespace {

using graph::NormAttributes;

void require_vectors(Booking& b, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i <= last; ++i) b.require_plain(i);
}

struct Sizes {
  ChannelStrips strips;
  double count;  // values of a channel
  double epsilon;

  explicit Sizes(Booking& b, const ChannelView& view)
      : strips(view),
        count(static_cast<double>(view.batch * view.spatial)),
        epsilon(b.attributes<NormAttributes>().epsilon) {}

  [[nodiscard]] double inverse_deviation(float variance) const {
    return 1.0 / std::sqrt(static_cast<double>(variance) + epsilon);
  }
  [[nodiscard]] Bytes sums_bytes() const {
    if (strips.parts() == 1) return 0;
    return static_cast<Bytes>(sizeof(StripSums)) * strips.strips() * strips.parts();
  }
};

StripSums total(const StripSums* partial, std::int64_t parts) {
  StripSums sums = partial[0];
  for (std::int64_t part = 1; part < parts; ++part) {
    for (std::size_t lane = 0; lane < sums.first.size(); ++lane) {
      sums.first[lane] += partial[part].first[lane];
      sums.second[lane] += partial[part].second[lane];
    }
  }
  return sums;
}

// sum(strip, part, sums), then finish(strip, sums per channel, owner), which gives the
// coefficients, then map(strip, part, coefficients). Several threads may finish a strip, each for
// itself; one of them owns it and writes what is known per channel.
template <class Sum, class Finish, class Map>
void sum_then_map(const ChannelStrips& strips, StripSums* partial, Sum&& sum, Finish&& finish,
                  Map&& map) {
  const std::int64_t parts = strips.parts();
  if (parts == 1) {
    parallel_ranges(strips.strips(), strips.elements(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t strip = begin; strip < end; ++strip) {
        StripSums sums;
        sum(strip, std::int64_t{0}, sums);
        map(strip, std::int64_t{0}, finish(strip, strips.folded(sums), true));
      }
    });
    return;
  }
  for (std::int64_t first = 0; first < strips.strips(); first += strips.round()) {
    const std::int64_t base = first * parts;
    const std::int64_t tasks = std::min(strips.round(), strips.strips() - first) * parts;
    const std::int64_t work = strips.elements() / strips.strips() * tasks / parts;
    parallel_ranges(tasks, work, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = base + begin; task < base + end; ++task) {
        StripSums sums;
        sum(task / parts, task % parts, sums);
        partial[task] = sums;
      }
    });
    // Backwards: what was read last is still in the cache.
    parallel_ranges(tasks, work, [&](std::int64_t begin, std::int64_t end) {
      StripCoefficients c;
      for (std::int64_t task = base + end - 1; task >= base + begin; --task) {
        const std::int64_t strip = task / parts;
        const bool owner = task % parts == parts - 1;
        if (owner || task == base + end - 1) {
          c = finish(strip, strips.folded(total(partial + strip * parts, parts)), owner);
        }
        map(strip, task % parts, c);
      }
    });
  }
}

}  // namespace

// x gamma beta => y mean var
std::unique_ptr<Kernel> plan_batch_norm(Booking& b) {
  const Sizes sizes(b, b.require_channels(0));
  require_vectors(b, 1, 2);
  b.produce_like(0, 0);
  b.produce_plain(1);
  b.produce_plain(2);
  b.flops(8.0 * static_cast<double>(graph::element_count(b.input(0).shape)));
  const std::size_t at = b.workspace(sizes.sums_bytes());
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      const ChannelStrips& strips = sizes.strips;
      const T* x = run.input<T>(0);
      const float* gamma = run.input<float>(1);
      const float* beta = run.input<float>(2);
      T* y = run.output<T>(0);
      float* mean = run.output<float>(1);
      float* variance = run.output<float>(2);
      sum_then_map(
          strips, run.scratch<StripSums>(at),
          [&](std::int64_t strip, std::int64_t part, StripSums& sums) {
            strips.add_squares(strip, part, x, sums);
          },
          [&](std::int64_t strip, const StripSums& sums, bool owner) {
            StripCoefficients c;
            const std::int64_t first = strips.first_channel(strip);
            for (std::int64_t lane = 0; lane < strips.real_channels(strip); ++lane) {
              const auto i = static_cast<std::size_t>(lane);
              const double m = sums.first[i] / sizes.count;
              const double v = std::max(sums.second[i] / sizes.count - m * m, 0.0);
              if (owner) {
                mean[first + lane] = static_cast<float>(m);
                variance[first + lane] = static_cast<float>(v);
              }
              c.mean[i] = static_cast<float>(m);
              c.scale[i] = static_cast<float>(gamma[first + lane] *
                                              sizes.inverse_deviation(static_cast<float>(v)));
              c.shift[i] = beta[first + lane];
            }
            return strips.repeated(c);
          },
          [&](std::int64_t strip, std::int64_t part, const StripCoefficients& c) {
            strips.normalize(strip, part, x, c, y);
          });
    });
  });
}

// x dy mean var gamma => dx dgamma dbeta. With xhat = (x - mean) / deviation:
//   dbeta = sum dy, dgamma = sum dy xhat, dx = gamma / deviation (dy - dbeta / n - xhat dgamma / n)
std::unique_ptr<Kernel> plan_batch_norm_grad(Booking& b) {
  const Sizes sizes(b, b.require_channels(0));
  b.require_like(1, 0);
  require_vectors(b, 2, 4);
  b.produce_like(0, 0);
  b.produce_plain(1);
  b.produce_plain(2);
  b.flops(12.0 * static_cast<double>(graph::element_count(b.input(0).shape)));
  const std::size_t at = b.workspace(sizes.sums_bytes());
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      const ChannelStrips& strips = sizes.strips;
      const T* x = run.input<T>(0);
      const T* dy = run.input<T>(1);
      const float* mean = run.input<float>(2);
      const float* variance = run.input<float>(3);
      const float* gamma = run.input<float>(4);
      T* dx = run.output<T>(0);
      float* dgamma = run.output<float>(1);
      float* dbeta = run.output<float>(2);
      const auto centers = [&](std::int64_t strip) {
        StripCoefficients c;
        std::copy_n(mean + strips.first_channel(strip), strips.real_channels(strip),
                    c.mean.begin());
        return strips.repeated(c);
      };
      sum_then_map(
          strips, run.scratch<StripSums>(at),
          [&](std::int64_t strip, std::int64_t part, StripSums& sums) {
            strips.add_products(strip, part, x, dy, centers(strip), sums);
          },
          [&](std::int64_t strip, const StripSums& sums, bool owner) {
            StripCoefficients c;
            const std::int64_t first = strips.first_channel(strip);
            for (std::int64_t lane = 0; lane < strips.real_channels(strip); ++lane) {
              const auto i = static_cast<std::size_t>(lane);
              const double inverse = sizes.inverse_deviation(variance[first + lane]);
              if (owner) {
                dbeta[first + lane] = static_cast<float>(sums.first[i]);
                dgamma[first + lane] = static_cast<float>(sums.second[i] * inverse);
              }
              c.mean[i] = mean[first + lane];
              c.shift[i] = static_cast<float>(sums.first[i] / sizes.count);
              c.slope[i] = static_cast<float>(sums.second[i] * inverse * inverse / sizes.count);
              c.scale[i] = static_cast<float>(gamma[first + lane] * inverse);
            }
            return strips.repeated(c);
          },
          [&](std::int64_t strip, std::int64_t part, const StripCoefficients& c) {
            strips.normalize_grad(strip, part, x, dy, c, dx);
          });
    });
  });
}

// x gamma beta running_mean running_var => y
std::unique_ptr<Kernel> plan_batch_norm_inference(Booking& b) {
  const Sizes sizes(b, b.require_channels(0));
  require_vectors(b, 1, 4);
  b.produce_like(0, 0);
  b.flops(4.0 * static_cast<double>(graph::element_count(b.input(0).shape)));
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      const ChannelStrips& strips = sizes.strips;
      const auto coefficients = [&](std::int64_t strip) {
        StripCoefficients c;
        const std::int64_t first = strips.first_channel(strip);
        for (std::int64_t lane = 0; lane < strips.real_channels(strip); ++lane) {
          const auto i = static_cast<std::size_t>(lane);
          c.mean[i] = run.input<float>(3)[first + lane];
          c.scale[i] =
              static_cast<float>(run.input<float>(1)[first + lane] *
                                 sizes.inverse_deviation(run.input<float>(4)[first + lane]));
          c.shift[i] = run.input<float>(2)[first + lane];
        }
        return strips.repeated(c);
      };
      const std::int64_t parts = strips.parts();
      parallel_ranges(strips.strips() * parts, strips.elements(),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t task = begin; task < end; ++task) {
                          strips.normalize(task / parts, task % parts, run.input<T>(0),
                                           coefficients(task / parts), run.output<T>(0));
                        }
                      });
    });
  });
}

// running_mean running_var (mean var)+ norm? => running_mean' running_var'
std::unique_ptr<Kernel> plan_batch_norm_update(Booking& b) {
  const auto& a = b.attributes<graph::RunningUpdateAttributes>();
  const bool guarded = graph::takes_norm(a);
  const std::size_t batches = (b.inputs() - 2) / 2;
  for (std::size_t i = 0; i < b.inputs(); ++i) b.require_plain(i);
  b.produce_plain(0);
  b.produce_plain(1);
  const std::int64_t channels = b.input(0).shape[0];
  const double rate = a.rate;
  const double count = static_cast<double>(a.count);
  const double correction = a.unbiased ? count / (count - 1.0) : 1.0;
  return make_kernel([=](const Run& run) {
    for (std::size_t i = 0; i < 2; ++i) {
      const float* running = run.input<float>(i);
      float* out = run.output<float>(i);
      if (out != running) std::copy_n(running, channels, out);
      if (guarded && !std::isfinite(*run.input<float>(2 * batches + 2))) continue;
      const double factor = rate * (i == 0 ? 1.0 : correction);
      for (std::size_t k = 0; k < batches; ++k) {
        const float* batch = run.input<float>(i + 2 + 2 * k);
        for (std::int64_t c = 0; c < channels; ++c) {
          out[c] = static_cast<float>((1.0 - rate) * out[c] + factor * batch[c]);
        }
      }
    }
  });
}

}  // namespace reprise::kernels::cpu
