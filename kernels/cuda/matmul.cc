// Matrix products and the gradient of a bias.

#include "kernels/cuda/broadcast.h"
#include "kernels/cuda/channel_sums.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

// a[..,M,K] b[..,K,P] => y[..,M,P]
GemmSizes sizes_of(Booking& b) {
  const auto& a = b.attributes<graph::MatmulAttributes>();
  const graph::Shape& left = b.input(0).shape;
  const graph::Shape& y = b.output(0).shape;
  GemmSizes s{.rows = y[y.size() - 2],
              .columns = y.back(),
              .inner = a.transpose_a ? left[left.size() - 2] : left.back(),
              .transpose_a = a.transpose_a,
              .transpose_b = a.transpose_b};
  for (std::size_t i = 0; i + 2 < y.size(); ++i) s.batch *= y[i];
  return s;
}

}  // namespace

// a b bias? acc? => y
std::unique_ptr<Kernel> plan_matmul(Booking& b) {
  const GemmSizes s = sizes_of(b);
  const GemmWorkspace workspace(b, {s});
  const bool bias = b.plain_inputs() == 3;
  const bool accumulates = b.accumulates();
  const std::size_t sum = b.inputs() - 1;
  const std::int64_t count = s.rows * s.columns * s.batch;
  b.flops(s.flops());
  return make_kernel([=](const Run& run) {
    if (accumulates) copy_to_output(run, sum, 0, count * static_cast<Bytes>(sizeof(float)));
    gemm(run, workspace, s, run.input(0), run.input(1), run.output(0), accumulates);
    if (bias) launch_add_row(run.input(2), s.columns, run.output(0), count, run.stream());
  });
}

// dy acc? => db: the sum over all axes but one.
std::unique_ptr<Kernel> plan_bias_grad(Booking& b) {
  const auto axis = static_cast<std::size_t>(b.attributes<graph::AxisAttributes>().axis);
  const graph::Shape& dy = b.input(0).shape;
  SumSizes s{.channels = dy[axis]};
  for (std::size_t d = 0; d < axis; ++d) s.outer *= dy[d];
  for (std::size_t d = axis + 1; d < dy.size(); ++d) s.inner *= dy[d];
  const SumPlan plan(s);
  const std::size_t at = b.workspace(static_cast<Bytes>(plan.scratch_bytes()));
  const bool accumulates = b.accumulates();
  b.flops(static_cast<double>(graph::element_count(dy)));
  return make_kernel([=](const Run& run) {
    launch_sums(plan, 1.0F, run.input(0), accumulates ? run.input(1) : nullptr, run.output(0),
                run.scratch<double>(at), run.stream());
  });
}

}  // namespace reprise::kernels::cuda
