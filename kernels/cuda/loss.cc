// Losses. The host refuses labels out of range where it hands them over (id_limits.h). A kernel
// cannot: to it such a label is a loss that is not a number.

#include "kernels/cuda/loss.h"

#include <algorithm>

#include "kernels/cuda/channel_sums.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

using graph::LossAttributes;

bool is_mean(Booking& b) {
  return b.attributes<LossAttributes>().reduction == graph::Reduction::kMean;
}

LabelledRows rows_of(Booking& b) {
  const graph::Shape& logits = b.input(0).shape;
  return {.rows = logits[0],
          .classes = logits[1],
          .ignored = b.attributes<LossAttributes>().ignore_index,
          .mean = is_mean(b)};
}

}  // namespace

// logits[M,K] labels[M] => loss
std::unique_ptr<Kernel> plan_softmax_cross_entropy(Booking& b) {
  const LabelledRows rows = rows_of(b);
  b.flops(20.0 * static_cast<double>(rows.rows * rows.classes));
  const std::size_t at = b.workspace(rows.rows * static_cast<Bytes>(sizeof(double)));
  return make_kernel([rows, at](const Run& run) {
    launch_softmax_cross_entropy(rows, run.input(0), run.input<std::int32_t>(1), run.output(0),
                                 run.scratch<double>(at), run.stream());
  });
}

// logits[M,K] labels[M] dloss[] => dlogits
std::unique_ptr<Kernel> plan_softmax_cross_entropy_grad(Booking& b) {
  const LabelledRows rows = rows_of(b);
  b.flops(40.0 * static_cast<double>(rows.rows * rows.classes));
  const std::size_t at = b.workspace(static_cast<Bytes>(sizeof(std::int32_t)));
  return make_kernel([rows, at](const Run& run) {
    launch_softmax_cross_entropy_grad(rows, run.input(0), run.input<std::int32_t>(1), run.input(2),
                                      run.output(0), run.scratch<std::int32_t>(at), run.stream());
  });
}

// logits[M,K] labels[M] => i32
std::unique_ptr<Kernel> plan_correct_count(Booking& b) {
  const LabelledRows rows = rows_of(b);
  b.flops(static_cast<double>(rows.rows * rows.classes));
  return make_kernel([rows](const Run& run) {
    launch_correct_count(rows, run.input(0), run.input<std::int32_t>(1),
                         run.output<std::int32_t>(0), run.stream());
  });
}

// prediction target => loss
std::unique_ptr<Kernel> plan_mean_squared_error(Booking& b) {
  const std::int64_t count = graph::element_count(b.input(0).shape);
  const SumPlan plan(SumSizes{.inner = count});
  const std::size_t at = b.workspace(static_cast<Bytes>(plan.scratch_bytes()));
  const double factor = is_mean(b) && count > 0 ? 1.0 / static_cast<double>(count) : 1.0;
  b.flops(3.0 * static_cast<double>(count));
  return make_kernel([plan, at, factor](const Run& run) {
    launch_sum_of_squared_differences(plan, factor, run.input(0), run.input(1), run.output(0),
                                      run.scratch<double>(at), run.stream());
  });
}

// prediction target dloss[] => dprediction
std::unique_ptr<Kernel> plan_mean_squared_error_grad(Booking& b) {
  const std::int64_t count = graph::element_count(b.input(0).shape);
  const double divisor = is_mean(b) ? static_cast<double>(std::max<std::int64_t>(count, 1)) : 1.0;
  b.flops(2.0 * static_cast<double>(count));
  return make_kernel([count, divisor](const Run& run) {
    launch_mean_squared_error_grad(divisor, run.input(0), run.input(1), run.input(2), run.output(0),
                                   count, run.stream());
  });
}

}  // namespace reprise::kernels::cuda
