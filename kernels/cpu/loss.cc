// Losses. Rows are independent; their losses go to the workspace and are added up in order, so that
// the result depends neither on threads nor on timing.

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector_math.h"

namespace reprise::kernels::cpu {
namespace {

using graph::LossAttributes;
using graph::Reduction;

struct Rows {
  std::int64_t count;    // M
  std::int64_t classes;  // K
  std::int64_t ignored;  // label
};

constexpr std::size_t kLanes = 16;

REPRISE_VECTOR float largest(const float* row, std::int64_t count) {
  std::array<float, kLanes> lanes;
  lanes.fill(row[0]);
  std::int64_t i = 0;
  for (; i + static_cast<std::int64_t>(kLanes) <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float x = row[i + static_cast<std::int64_t>(lane)];
      lanes[lane] = x > lanes[lane] ? x : lanes[lane];
    }
  }
  float result = lanes[0];
  for (const float lane : lanes) result = std::max(result, lane);
  for (; i < count; ++i) result = std::max(result, row[i]);
  return result;
}

// Sum of e^(x - shift), the terms in f32, their sums in f64.
REPRISE_VECTOR double sum_of_exponentials(const float* row, std::int64_t count, float shift) {
  std::array<double, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + static_cast<std::int64_t>(kLanes) <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += exp_f32(row[i + static_cast<std::int64_t>(lane)] - shift);
    }
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (; i < count; ++i) sum += exp_f32(row[i] - shift);
  return sum;
}

// dx = factor * e^(x - shift); dx may be x.
REPRISE_VECTOR void scaled_exponentials(const float* row, std::int64_t count, float shift,
                                        float factor, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = factor * exp_f32(row[i] - shift);
}

// Throws for the first label outside of [0, K) that is not the ignored one; returns how many count.
std::int64_t count_labels(const Run& run, const std::int32_t* labels, const Rows& rows) {
  std::int64_t counted = 0;
  for (std::int64_t m = 0; m < rows.count; ++m) {
    if (labels[m] == rows.ignored) continue;
    if (labels[m] < 0 || labels[m] >= rows.classes) {
      throw base::input_error("node '{}': label {} of row {} is outside of [0, {})", run.node,
                              labels[m], m, rows.classes);
    }
    ++counted;
  }
  return counted;
}

Rows rows_of(const Booking& b) {
  const graph::Shape& logits = b.input(0).shape;
  return {logits[0], logits[1], b.attributes<LossAttributes>().ignore_index};
}

double divisor(Reduction reduction, std::int64_t counted) {
  return reduction == Reduction::kMean ? static_cast<double>(std::max<std::int64_t>(counted, 1))
                                       : 1.0;
}

}  // namespace

// logits[M,K] labels[M] => loss
std::unique_ptr<Kernel> plan_softmax_cross_entropy(Booking& b) {
  const Rows rows = rows_of(b);
  const Reduction reduction = b.attributes<LossAttributes>().reduction;
  b.require_plain(0);
  b.require_plain(1);
  b.produce_plain(0);
  b.flops(20.0 * static_cast<double>(rows.count * rows.classes));
  b.workspace(rows.count * static_cast<Bytes>(sizeof(double)));
  return make_kernel([=](const Run& run) {
    const float* logits = run.input<float>(0);
    const auto* labels = run.input<std::int32_t>(1);
    auto* losses = run.scratch<double>();
    const std::int64_t counted = count_labels(run, labels, rows);
    parallel_ranges(rows.count, rows.count * rows.classes,
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t m = begin; m < end; ++m) {
                        losses[m] = 0;
                        if (labels[m] == rows.ignored) continue;
                        const float* row = logits + m * rows.classes;
                        const float shift = largest(row, rows.classes);
                        losses[m] = std::log(sum_of_exponentials(row, rows.classes, shift)) +
                                    static_cast<double>(shift) - row[labels[m]];
                      }
                    });
    double sum = 0;
    for (std::int64_t m = 0; m < rows.count; ++m) sum += losses[m];
    *run.output<float>(0) = static_cast<float>(sum / divisor(reduction, counted));
  });
}

// logits[M,K] labels[M] dloss[] => dlogits
std::unique_ptr<Kernel> plan_softmax_cross_entropy_grad(Booking& b) {
  const Rows rows = rows_of(b);
  const Reduction reduction = b.attributes<LossAttributes>().reduction;
  for (std::size_t i = 0; i < 3; ++i) b.require_plain(i);
  b.produce_plain(0);
  b.flops(40.0 * static_cast<double>(rows.count * rows.classes));
  return make_kernel([=](const Run& run) {
    const float* logits = run.input<float>(0);
    const auto* labels = run.input<std::int32_t>(1);
    float* out = run.output<float>(0);
    const double scale = static_cast<double>(*run.input<float>(2)) /
                         divisor(reduction, count_labels(run, labels, rows));
    parallel_ranges(
        rows.count, rows.count * rows.classes, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t m = begin; m < end; ++m) {
            const float* row = logits + m * rows.classes;
            float* to = out + m * rows.classes;
            if (labels[m] == rows.ignored) {
              std::fill_n(to, rows.classes, 0.0f);
              continue;
            }
            const float shift = largest(row, rows.classes);
            const double sum = sum_of_exponentials(row, rows.classes, shift);
            scaled_exponentials(row, rows.classes, shift, static_cast<float>(scale / sum), to);
            to[labels[m]] -= static_cast<float>(scale);
          }
        });
  });
}

// prediction target => loss
std::unique_ptr<Kernel> plan_mean_squared_error(Booking& b) {
  const std::int64_t count = graph::element_count(b.input(0).shape);
  const Reduction reduction = b.attributes<LossAttributes>().reduction;
  b.require_plain(0);
  b.require_plain(1);
  b.produce_plain(0);
  b.flops(3.0 * static_cast<double>(count));
  // A fixed number of parts, each summed in order, then added in order.
  const std::int64_t parts = std::clamp<std::int64_t>(count / kSerialElements, 1, 64);
  b.workspace(parts * static_cast<Bytes>(sizeof(double)));
  return make_kernel([=](const Run& run) {
    const float* prediction = run.input<float>(0);
    const float* target = run.input<float>(1);
    auto* sums = run.scratch<double>();
    parallel_parts(parts, count, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
      double sum = 0;
      for (std::int64_t i = begin; i < end; ++i) {
        const double difference = static_cast<double>(prediction[i]) - target[i];
        sum += difference * difference;
      }
      sums[part] = sum;
    });
    double sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += sums[part];
    *run.output<float>(0) = static_cast<float>(sum / divisor(reduction, count));
  });
}

namespace {

REPRISE_VECTOR void scaled_difference(const float* a, const float* b, float factor, float* out,
                                      std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = factor * (a[i] - b[i]);
}

}  // namespace

// prediction target dloss[] => dprediction
std::unique_ptr<Kernel> plan_mean_squared_error_grad(Booking& b) {
  const std::int64_t count = graph::element_count(b.input(0).shape);
  const double divided_by = divisor(b.attributes<LossAttributes>().reduction, count);
  for (std::size_t i = 0; i < 3; ++i) b.require_plain(i);
  b.produce_plain(0);
  b.flops(2.0 * static_cast<double>(count));
  return make_kernel([=](const Run& run) {
    const auto factor =
        static_cast<float>(2.0 * static_cast<double>(*run.input<float>(2)) / divided_by);
    parallel_ranges(count, count, [&](std::int64_t begin, std::int64_t end) {
      scaled_difference(run.input<float>(0) + begin, run.input<float>(1) + begin, factor,
                        run.output<float>(0) + begin, end - begin);
    });
  });
}

// logits[M,K] labels[M] => i32
std::unique_ptr<Kernel> plan_correct_count(Booking& b) {
  const Rows rows = rows_of(b);
  b.require_plain(0);
  b.require_plain(1);
  b.produce_plain(0);
  return make_kernel([=](const Run& run) {
    const float* logits = run.input<float>(0);
    const auto* labels = run.input<std::int32_t>(1);
    count_labels(run, labels, rows);
    std::atomic<std::int32_t> correct{0};
    parallel_ranges(rows.count, rows.count * rows.classes,
                    [&](std::int64_t begin, std::int64_t end) {
                      std::int32_t right = 0;
                      for (std::int64_t m = begin; m < end; ++m) {
                        const float* row = logits + m * rows.classes;
                        const auto best = std::max_element(row, row + rows.classes) - row;
                        if (labels[m] != rows.ignored && best == labels[m]) ++right;
                      }
                      correct += right;
                    });
    *run.output<std::int32_t>(0) = correct;
  });
}

}  // namespace reprise::kernels::cpu
