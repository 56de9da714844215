// Matrix products and the gradient of a bias.

#include <algorithm>

#include "kernels/cuda/broadcast.h"
#include "kernels/cuda/channel_sums.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/element_type.h"
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
              .transpose_b = a.transpose_b,
              .bf16_factors = b.input(0).dtype == graph::DType::kBF16,
              .bf16_result = b.output(0).dtype == graph::DType::kBF16};
  for (std::size_t i = 0; i + 2 < y.size(); ++i) s.batch *= y[i];
  return s;
}

// a b bias => y of bf16: the bias belongs to what is rounded, so rows of the product wait for it in
// the workspace, in f32.
class BiasedProduct final : public Kernel {
 public:
  BiasedProduct(Booking& b, const GemmSizes& s)
      : all_(s),
        rows_(rows_at_once(s)),
        workspace_(b, {piece(rows_), piece(s.rows % rows_)}),
        product_at_(b.workspace(rows_ * s.batch * s.columns * static_cast<Bytes>(sizeof(float)))) {
    b.flops(s.flops());
    b.launches(2 * ((s.rows + rows_ - 1) / rows_));
  }

  void execute(const Run& run) override {
    float* product = run.scratch(product_at_);
    for (std::int64_t first = 0; first < all_.rows; first += rows_) {
      const GemmSizes s = piece(std::min(rows_, all_.rows - first));
      const BFloat16* a = run.input<BFloat16>(0) + first * (s.transpose_a ? 1 : s.stride_a);
      gemm(run, workspace_, s, a, run.input(1), product);
      launch_add_row(run.input(2), s.columns, product, run.output<BFloat16>(0) + first * s.columns,
                     s.rows * s.batch * s.columns, run.stream());
    }
  }

 private:
  // Whose product takes at most 64 MiB; all rows of a batch, whose matrices lie side by side. It
  // depends on the sizes alone. Eights, since tensor cores want factors at multiples of 16 bytes.
  static std::int64_t rows_at_once(const GemmSizes& s) {
    constexpr std::int64_t kMostFloats = std::int64_t{16} << 20;
    const std::int64_t rows = std::max<std::int64_t>(s.rows, 1);
    if (s.batch != 1) return rows;
    const std::int64_t columns = std::max<std::int64_t>(s.columns, 1);
    return std::min(rows, std::max<std::int64_t>(8, kMostFloats / columns / 8 * 8));
  }
  GemmSizes piece(std::int64_t rows) const {
    GemmSizes s = all_;
    s.rows = rows;
    s.stride_a = s.transpose_a ? all_.rows : all_.inner;
    s.bf16_result = false;
    return s;
  }

  GemmSizes all_;
  std::int64_t rows_;
  GemmWorkspace workspace_;
  std::size_t product_at_;
};

}  // namespace

// a b bias? acc? => y
std::unique_ptr<Kernel> plan_matmul(Booking& b) {
  const GemmSizes s = sizes_of(b);
  if (b.plain_inputs() == 3 && s.bf16_result) return std::make_unique<BiasedProduct>(b, s);
  const GemmWorkspace workspace(b, {s});
  const bool bias = b.plain_inputs() == 3;
  const bool accumulates = b.accumulates();
  const std::size_t sum = b.inputs() - 1;
  const std::int64_t count = s.rows * s.columns * s.batch;
  b.flops(s.flops());
  return make_kernel([=](const Run& run) {
    float* y = run.output(0);
    if (accumulates) copy_to_output(run, sum, 0, count * static_cast<Bytes>(sizeof(float)));
    gemm(run, workspace, s, run.input(0), run.input(1), y, accumulates);
    if (bias) launch_add_row(run.input(2), s.columns, y, y, count, run.stream());
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
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Run& run) {
      launch_sums(plan, 1.0F, run.input<T>(0), accumulates ? run.input(1) : nullptr, run.output(0),
                  run.scratch<double>(at), run.stream());
    });
  });
}

}  // namespace reprise::kernels::cuda
