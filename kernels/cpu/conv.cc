// Convolutions: oneDNN primitives that choose their layouts freely.

#include "kernels/cpu/ops.h"
#include "kernels/cpu/parted_grad_weight.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/primitive.h"

namespace reprise::kernels::cpu {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;
using graph::Conv2dAttributes;

// Sizes of one convolution and what x, w and y are stored as; grouped weights get an axis of groups
// in front.
struct Geometry {
  Dims x, w, y;
  Dims stride, dilation, padding;
  graph::DType type;

  Geometry(graph::DType dtype, const Conv2dAttributes& a, const graph::Shape& x_shape,
           const graph::Shape& w_shape, const graph::Shape& y_shape)
      : x(x_shape),
        w(w_shape),
        y(y_shape),
        stride(a.stride),
        dilation{a.dilation[0] - 1, a.dilation[1] - 1},  // oneDNN counts the skipped elements
        padding(a.padding),
        type(dtype) {
    if (a.groups > 1) {
      w = {a.groups, w_shape[0] / a.groups, w_shape[1], w_shape[2], w_shape[3]};
    }
  }

  // The same convolution of fewer images.
  [[nodiscard]] Geometry of_images(std::int64_t count) const {
    Geometry fewer = *this;
    fewer.x[0] = fewer.y[0] = count;
    return fewer;
  }

  // Two operations for each output element and weight of its group.
  [[nodiscard]] double flops() const {
    const double weights_per_output =
        static_cast<double>(w[w.size() - 3] * w[w.size() - 2] * w.back());
    return 2.0 * static_cast<double>(y[0] * y[1] * y[2] * y[3]) * weights_per_output;
  }
};

dnnl::convolution_forward::primitive_desc forward(const Geometry& g, bool bias) {
  const dnnl::convolution_forward::desc desc =
      bias ? dnnl::convolution_forward::desc(
                 prop_kind::forward_training, algorithm::convolution_direct,
                 any_layout(g.x, g.type), any_layout(g.w, g.type), row_major({g.y[1]}),
                 any_layout(g.y, g.type), g.stride, g.dilation, g.padding, g.padding)
           : dnnl::convolution_forward::desc(prop_kind::forward_training,
                                             algorithm::convolution_direct, any_layout(g.x, g.type),
                                             any_layout(g.w, g.type), any_layout(g.y, g.type),
                                             g.stride, g.dilation, g.padding, g.padding);
  return {desc, user_scratchpad(), cpu_engine()};
}

GradWeightDesc grad_weight(const Geometry& g) {
  const dnnl::convolution_backward_weights::desc desc(
      algorithm::convolution_direct, any_layout(g.x, g.type), any_layout(g.w),
      any_layout(g.y, g.type), g.stride, g.dilation, g.padding, g.padding);
  return {desc, user_scratchpad(), cpu_engine(), forward(g, false)};
}

}  // namespace

std::unique_ptr<Kernel> plan_conv2d(Booking& b) {
  const Geometry g(b.input(0).dtype, b.attributes<Conv2dAttributes>(), b.input(0).shape,
                   b.input(1).shape, b.output(0).shape);
  const bool bias = b.inputs() == 3;
  const auto pd = forward(g, bias);
  b.require(0, pd.src_desc());
  b.require(1, pd.weights_desc(), row_major(g.w, g.type));
  b.produce(0, pd.dst_desc());
  b.flops(g.flops());
  const std::size_t at = b.workspace(static_cast<Bytes>(pd.scratchpad_desc().get_size()));
  std::vector<Operand> operands{
      reads(DNNL_ARG_SRC, 0, pd.src_desc()), reads(DNNL_ARG_WEIGHTS, 1, pd.weights_desc()),
      writes(DNNL_ARG_DST, 0, pd.dst_desc()), scratch(pd.scratchpad_desc(), at)};
  if (bias) {
    b.require_plain(2);
    operands.push_back(reads(DNNL_ARG_BIAS, 2, pd.bias_desc()));
  }
  return std::make_unique<PrimitiveKernel>(dnnl::convolution_forward(pd), operands);
}

// dy w => dx
std::unique_ptr<Kernel> plan_conv2d_grad_input(Booking& b) {
  const Geometry g(b.input(0).dtype, b.attributes<Conv2dAttributes>(), b.output(0).shape,
                   b.input(1).shape, b.input(0).shape);
  const dnnl::convolution_backward_data::desc desc(
      algorithm::convolution_direct, any_layout(g.x, g.type), any_layout(g.w, g.type),
      any_layout(g.y, g.type), g.stride, g.dilation, g.padding, g.padding);
  const dnnl::convolution_backward_data::primitive_desc pd(desc, user_scratchpad(), cpu_engine(),
                                                           forward(g, false));
  b.require(0, pd.diff_dst_desc());
  b.require(1, pd.weights_desc(), row_major(g.w, g.type));
  b.produce(0, pd.diff_src_desc());
  b.flops(g.flops());
  const std::size_t at = b.workspace(static_cast<Bytes>(pd.scratchpad_desc().get_size()));
  return std::make_unique<PrimitiveKernel>(
      dnnl::convolution_backward_data(pd),
      std::vector{reads(DNNL_ARG_DIFF_DST, 0, pd.diff_dst_desc()),
                  reads(DNNL_ARG_WEIGHTS, 1, pd.weights_desc()),
                  writes(DNNL_ARG_DIFF_SRC, 0, pd.diff_src_desc()),
                  scratch(pd.scratchpad_desc(), at)});
}

namespace {

// x dy acc => dw. oneDNN overwrites dw, so the new part goes to the workspace and is added.
class AccumulatingGradWeight final : public Kernel {
 public:
  AccumulatingGradWeight(const GradWeightDesc& pd, std::size_t part_at, std::size_t scratch_at)
      : primitive_(dnnl::convolution_backward_weights(pd), arguments(pd)),
        elements_(static_cast<std::int64_t>(pd.diff_weights_desc().get_size() / sizeof(float))),
        part_at_(part_at),
        scratch_at_(scratch_at) {}

  void execute(const Run& run) override {
    primitive_.bind(0, run.inputs[0]);
    primitive_.bind(1, run.inputs[1]);
    primitive_.bind(2, run.workspace + part_at_);
    if (scratch_at_ != kNone) primitive_.bind(3, run.workspace + scratch_at_);
    primitive_.execute(run);
    add_arrays(run.input<float>(2), run.scratch<float>(part_at_), run.output<float>(0), elements_);
  }

  static constexpr std::size_t kNone = ~std::size_t{0};

 private:
  static std::vector<Primitive::Argument> arguments(const GradWeightDesc& pd) {
    std::vector<Primitive::Argument> arguments{{DNNL_ARG_SRC, pd.src_desc()},
                                               {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                                               {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()}};
    if (pd.scratchpad_desc().get_size() > 0) {
      arguments.push_back({DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()});
    }
    return arguments;
  }

  Primitive primitive_;
  std::int64_t elements_;
  std::size_t part_at_;
  std::size_t scratch_at_;
};

}  // namespace

// x dy acc? => dw
std::unique_ptr<Kernel> plan_conv2d_grad_weight(Booking& b) {
  const Geometry g(b.input(0).dtype, b.attributes<Conv2dAttributes>(), b.input(0).shape,
                   b.output(0).shape, b.input(1).shape);
  b.flops(g.flops());
  if (g.type == graph::DType::kBF16) {
    auto parted = plan_parted_grad_weight(
        b, g.w, [&](std::int64_t images) { return grad_weight(g.of_images(images)); });
    if (parted != nullptr) return parted;
  }
  const GradWeightDesc pd = grad_weight(g);
  b.require(0, pd.src_desc());
  b.require(1, pd.diff_dst_desc());
  b.produce(0, pd.diff_weights_desc(), row_major(g.w));
  const auto scratch_bytes = static_cast<Bytes>(pd.scratchpad_desc().get_size());
  if (b.node().accumulate) {
    b.require(2, pd.diff_weights_desc(), row_major(g.w));
    const std::size_t part = b.workspace(static_cast<Bytes>(pd.diff_weights_desc().get_size()));
    const std::size_t at =
        scratch_bytes > 0 ? b.workspace(scratch_bytes) : AccumulatingGradWeight::kNone;
    return std::make_unique<AccumulatingGradWeight>(pd, part, at);
  }
  const std::size_t at = b.workspace(scratch_bytes);
  return std::make_unique<PrimitiveKernel>(
      dnnl::convolution_backward_weights(pd),
      std::vector{reads(DNNL_ARG_SRC, 0, pd.src_desc()),
                  reads(DNNL_ARG_DIFF_DST, 1, pd.diff_dst_desc()),
                  writes(DNNL_ARG_DIFF_WEIGHTS, 0, pd.diff_weights_desc()),
                  scratch(pd.scratchpad_desc(), at)});
}

}  // namespace reprise::kernels::cpu
