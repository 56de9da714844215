#pragma once

// What the ops of batch normalisation book.

#include "kernels/cuda/batch_norm.h"
#include "kernels/cuda/booking.h"

namespace reprise::kernels::cuda {

// x[N,C,...]
[[nodiscard]] inline SumSizes channel_sizes(const graph::Shape& x) {
  SumSizes s{.outer = x[0], .channels = x[1]};
  for (std::size_t d = 2; d < x.size(); ++d) s.inner *= x[d];
  return s;
}

// Of a node with NormAttributes, whose first input is x.
[[nodiscard]] inline NormSizes norm_sizes(const Booking& b) {
  return {.x = channel_sizes(b.input(0).shape),
          .epsilon = b.attributes<graph::NormAttributes>().epsilon};
}

// Two partial sums and the coefficients of each channel.
class NormWorkspace {
 public:
  NormWorkspace(Booking& b, const SumSizes& x)
      : plan_(x),
        partial_at_(b.workspace(static_cast<Bytes>(plan_.scratch_bytes(2)))),
        coefficients_at_(
            b.workspace(kNormCoefficients * x.channels * static_cast<Bytes>(sizeof(float)))) {}
  [[nodiscard]] const SumPlan& plan() const { return plan_; }
  [[nodiscard]] double* partial(const Run& run) const { return run.scratch<double>(partial_at_); }
  [[nodiscard]] float* coefficients(const Run& run) const { return run.scratch(coefficients_at_); }

 private:
  SumPlan plan_;
  std::size_t partial_at_, coefficients_at_;
};

}  // namespace reprise::kernels::cuda
